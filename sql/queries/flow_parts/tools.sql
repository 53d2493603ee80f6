-- The tools that a version of a flow names, under its names for them.
select coalesce(json_agg(json_build_object('id', t.tool_id, 'name', w.name, 'description', t.description, 'target', t.target,
  'url', t.url, 'argumentsSchema', t.arguments_schema, 'timeoutMs', t.timeout_ms, 'idempotent', t.idempotent,
  'headers', t.secret_headers, 'signingSecret', t.signing_secret)), '[]') as tools
from unnest($2::text[], $3::uuid[]) w (name, id)
join tools t on t.tenant_id = $1 and t.tool_id = w.id
