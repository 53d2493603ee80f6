-- Takes up a run for the first time, with its first step, which asks the model: the events $5 and $6, of which the last
-- says the step and has an empty name in place of the model's, and the step's row. No row where it was taken up before, was asked to cancel,
-- itself or its root, is none of this flow, or where its model was removed. What of the run is not the same for all that were just begun; the turn as turns/load has it.
with begun as (
  update runs r set lease_epoch = r.lease_epoch + 1, status = 'running', started_at = $3, last_seq = 1 + cardinality($5::text[])
  from agent_versions v, run_payloads i, models m
  where r.tenant_id = $1 and r.run_id = $2 and r.status = 'queued' and r.last_seq = 1 and r.cancel_requested_at is null
    and (r.parent_run_id is null or not exists (
      select from runs root where root.tenant_id = $1 and root.run_id = r.root_run_id and root.cancel_requested_at is not null))
    and r.flow_id = $4 and v.tenant_id = r.tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version
    and i.tenant_id = r.tenant_id and i.run_id = r.run_id and m.tenant_id = r.tenant_id
    and m.model_provider_id = coalesce((i.options #>> '{overrides,modelProviderId}')::uuid, v.model_provider_id)
    and m.name = coalesce(i.options #>> '{overrides,model}', v.model)
  returning r.project_id, r.flow_version, r.origin, r.parent_run_id, r.parent_slot, r.root_run_id, r.dry_run, r.agent_id, r.agent_version,
    r.conversation_id, r.via, r.labels, r.created_by, r.created_at, r.lease_epoch,
    v.instructions, m.name as model, v.parameters, v.limits, v.output_schema, v.guardrails, v.streaming, i.options -> 'overrides' as overrides,
    m.model_provider_id, m.prompt_price::text, m.completion_price::text, m.cache_read_price::text, m.cache_write_price::text,
    m.reasoning_price::text, m.context_window
), step as materialized (
  select run_begin_step(of_tenant_id => $1, of_run_id => $2, begun => row(1, $7, b.model, '', 1, 0, $8)::step_begin, at => $3)
  from begun b
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $2, 1 + e.n, e.kind,
    case when e.n = cardinality($5::text[])
      then replace(e.data::text, '"name":""', '"name":' || to_json(begun.model))::json else e.data end, $3
  from begun, unnest($5::text[], $6::json[]) with ordinality e (kind, data, n)
)
select b.*, policies_of(of_tenant_id => $1, of_project_id => b.project_id) as policies, p.base_url, p.api_key_name, p.api_key_environment, p.api_key_secret, p.options as provider_options,
  case when b.context_window is not null and b.conversation_id is not null then
    conversation_prompt(of_tenant_id => $1, of_conversation_id => b.conversation_id) end as last_prompt,
  agent_tools(of_tenant_id => $1, of_agent_id => b.agent_id, of_version => b.agent_version) as tools,
  case when b.conversation_id is null then '[]' else conversation_history(of_tenant_id => $1, of_conversation_id => b.conversation_id, most => $9, most_bytes => $10) end as history,
  case when b.conversation_id is null or coalesce(b.overrides #>> '{limits,historyCalls}', b.limits ->> 'historyCalls') = 'false' then '[]' else
    conversation_calls(of_tenant_id => $1, of_conversation_id => b.conversation_id, but_run_id => $2, most_messages => $9, most_bytes => $10) end as past,
  case when b.conversation_id is null then
    (select i.input from run_payloads i where i.tenant_id = $1 and i.run_id = $2) end as input,
  case when b.parent_run_id is null then 1 else run_levels(of_tenant_id => $1, of_run_id => $2) end as levels
from begun b
cross join step
join model_providers p on p.tenant_id = $1 and p.model_provider_id = b.model_provider_id
