select tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent, secret_headers, signing_secret,
  approval, target, agent_id, agent_version, flow_id, flow_version, dry_run, created_by, created_at
from tools
where tenant_id = $1 and tool_id = $2
