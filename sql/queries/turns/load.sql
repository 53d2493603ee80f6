-- What a turn is made of: the version, its model and prices, its tools, and what was said.
select v.instructions, v.model, v.parameters, v.limits, p.model_provider_id, p.base_url, p.api_key_name,
  p.api_key_environment, p.api_key_secret, m.prompt_price::text, m.completion_price::text, m.cache_read_price::text, m.cache_write_price::text,
  m.reasoning_price::text,
  (select coalesce(jsonb_agg(jsonb_build_object('name', t.name, 'description', t.description, 'url', t.url,
      'argumentsSchema', t.arguments_schema, 'timeoutMs', t.timeout_ms, 'idempotent', t.idempotent)
      order by g.position), '[]')
    from agent_version_tools g join tools t on t.tenant_id = g.tenant_id and t.tool_id = g.tool_id
    where g.tenant_id = v.tenant_id and g.agent_id = v.agent_id and g.version = v.version),
  (select coalesce(jsonb_agg(jsonb_build_object('role', said.role, 'content', said.content) order by said.position), '[]')
    from (select c.position, c.role, c.content, row_number() over newest as place,
        sum(octet_length(c.content)) over newest as bytes
      from (select m.position, m.role, m.content from conversation_messages m
        where m.tenant_id = r.tenant_id and m.conversation_id = r.conversation_id
        order by m.position desc limit $3) c
      window newest as (order by c.position desc)) said
    where said.place = 1 or said.bytes <= $4),
  case when r.conversation_id is null then
    (select i.input from run_payloads i where i.tenant_id = r.tenant_id and i.run_id = r.run_id) end
from runs r
join agent_versions v on v.tenant_id = r.tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version
join model_providers p on p.tenant_id = v.tenant_id and p.model_provider_id = v.model_provider_id
join models m on m.tenant_id = v.tenant_id and m.model_provider_id = v.model_provider_id and m.name = v.model
where r.tenant_id = $1 and r.run_id = $2
