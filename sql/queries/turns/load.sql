-- What a turn is made of: the version with its guardrails and the policies beside them, the model and its prices, its tools, and what was said. What the run sets in place of the
-- version's own is in `overrides`; its model is the one here. No row where that model was removed since.
select v.instructions, m.name as model, v.parameters, v.limits, v.output_schema, v.guardrails, v.streaming,
  policies_of(of_tenant_id => $1, of_project_id => r.project_id) as policies, i.options -> 'overrides' as overrides, p.model_provider_id, p.base_url, p.api_key_name,
  p.api_key_environment, p.api_key_secret, p.options as provider_options, m.prompt_price::text, m.completion_price::text, m.cache_read_price::text, m.cache_write_price::text,
  m.reasoning_price::text,
  m.context_window,
  case when m.context_window is not null and r.conversation_id is not null then
    conversation_prompt(of_tenant_id => $1, of_conversation_id => r.conversation_id) end as last_prompt,
  agent_tools(of_tenant_id => $1, of_agent_id => v.agent_id, of_version => v.version) as tools,
  case when r.conversation_id is null then '[]' else
    conversation_history(of_tenant_id => $1, of_conversation_id => r.conversation_id, most => $3, most_bytes => $4) end as history,
  case when r.conversation_id is null or coalesce(i.options #>> '{overrides,limits,historyCalls}', v.limits ->> 'historyCalls') = 'false' then '[]' else
    conversation_calls(of_tenant_id => $1, of_conversation_id => r.conversation_id, but_run_id => $2, most_messages => $3, most_bytes => $4) end as past,
  case when r.conversation_id is null then i.input end as input,
  case when r.parent_run_id is null then 1 else run_levels(of_tenant_id => $1, of_run_id => $2) end as levels
from runs r
join agent_versions v on v.tenant_id = r.tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version
left join run_payloads i on i.tenant_id = r.tenant_id and i.run_id = r.run_id
join models m on m.tenant_id = v.tenant_id
  and m.model_provider_id = coalesce((i.options #>> '{overrides,modelProviderId}')::uuid, v.model_provider_id)
  and m.name = coalesce(i.options #>> '{overrides,model}', v.model)
join model_providers p on p.tenant_id = m.tenant_id and p.model_provider_id = m.model_provider_id
where r.tenant_id = $1 and r.run_id = $2
