-- Takes up a run for the first time, with its first step, which asks the model: the events $5 and $6, of which the last
-- says the step and lacks the model's name, and the step's row. No row where it was taken up before, was asked to cancel,
-- or is none of this flow. The run is as it was before these events; the turn as turns/load has it.
with turn as (
  select v.instructions, v.model, v.parameters, v.limits, p.model_provider_id, p.base_url, p.api_key_name,
    p.api_key_environment, p.api_key_secret, m.prompt_price::text, m.completion_price::text, m.cache_read_price::text,
    m.cache_write_price::text, m.reasoning_price::text,
    (select coalesce(jsonb_agg(jsonb_build_object('name', t.name, 'description', t.description, 'url', t.url,
        'argumentsSchema', t.arguments_schema, 'timeoutMs', t.timeout_ms, 'idempotent', t.idempotent)
        order by g.position), '[]')
      from agent_version_tools g join tools t on t.tenant_id = g.tenant_id and t.tool_id = g.tool_id
      where g.tenant_id = v.tenant_id and g.agent_id = v.agent_id and g.version = v.version) as tools,
    (select coalesce(jsonb_agg(jsonb_build_object('role', said.role, 'content', said.content) order by said.position), '[]')
      from (select c.position, c.role, c.content, row_number() over newest as place,
          sum(octet_length(c.content)) over newest as bytes
        from (select m.position, m.role, m.content from conversation_messages m
          where m.tenant_id = r.tenant_id and m.conversation_id = r.conversation_id
          order by m.position desc limit $9) c
        window newest as (order by c.position desc)) said
      where said.place = 1 or said.bytes <= $10) as history,
    case when r.conversation_id is null then
      (select i.input from run_payloads i where i.tenant_id = r.tenant_id and i.run_id = r.run_id) end as input
  from runs r
  join agent_versions v on v.tenant_id = r.tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version
  join model_providers p on p.tenant_id = v.tenant_id and p.model_provider_id = v.model_provider_id
  join models m on m.tenant_id = v.tenant_id and m.model_provider_id = v.model_provider_id and m.name = v.model
  where r.tenant_id = $1 and r.run_id = $2 and r.status = 'queued' and r.flow_id = $4
), begun as (
  update runs r set lease_epoch = r.lease_epoch + 1, status = 'running', started_at = $3, last_seq = 1 + cardinality($5::text[])
  from turn
  where r.tenant_id = $1 and r.run_id = $2 and r.status = 'queued' and r.last_seq = 1 and r.cancel_requested_at is null
  returning r.tenant_id, r.run_id, r.project_id, r.flow_id, r.flow_version, r.status, r.origin, r.parent_run_id, r.dry_run,
    r.agent_id, r.agent_version, r.conversation_id, r.via, r.failure_message, r.cancel_requested_at, r.created_by,
    r.created_at, r.started_at, r.completed_at, 1::bigint as last_seq, r.calls, r.cost_usd::float8, r.prompt_tokens,
    r.completion_tokens, r.cache_read_tokens, r.cache_write_tokens, r.reasoning_tokens, r.lease_epoch
), step as (
  insert into run_steps (tenant_id, run_id, step, kind, name, status, attempt, failures, request, started_at)
  select $1, $2, 1, $7, turn.model, 'running', 1, 0, $8, $3 from begun, turn
), told as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $2, 1 + e.n, e.kind,
    case when e.n = cardinality($5::text[]) then e.data || jsonb_build_object('name', turn.model) else e.data end, $3
  from begun, turn, unnest($5::text[], $6::jsonb[]) with ordinality e (kind, data, n)
)
select begun.*, turn.* from begun, turn
