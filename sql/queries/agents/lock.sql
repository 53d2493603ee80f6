select agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
from agents
where tenant_id = $1 and agent_id = $2
for update
