update agents
set live_version = $3, updated_at = $4
where tenant_id = $1 and agent_id = $2
returning agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
