-- The tools of a project by their names.
select coalesce(json_agg(json_build_object('id', t.tool_id, 'name', t.name, 'description', t.description, 'target', t.target,
  'url', t.url, 'argumentsSchema', t.arguments_schema, 'timeoutMs', t.timeout_ms, 'idempotent', t.idempotent,
  'headers', t.secret_headers, 'signingSecret', t.signing_secret)), '[]') as tools
from tools t
where t.tenant_id = $1 and t.project_id = $2 and t.name = any ($3)
