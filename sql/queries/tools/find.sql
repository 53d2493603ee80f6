select tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent, secret_headers, signing_secret,
  approval, created_by, created_at
from tools
where tenant_id = $1 and tool_id = $2
