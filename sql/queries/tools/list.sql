select tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent, secret_headers, signing_secret,
  approval, target, agent_id, agent_version, flow_id, flow_version, dry_run, created_by, created_at
from tools
where tenant_id = $1
  and ($2::uuid is null or project_id = $2)
  and ($3::uuid is null or tool_id {{>|<}} $3)
order by tool_id {{asc|desc}}
limit $4
