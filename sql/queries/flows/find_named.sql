select id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
from flows
where tenant_id = $1 and project_id = $2 and flow_id = $3
