update agents
set name = coalesce($3, name), description = coalesce($4, description), updated_at = $5
where tenant_id = $1 and agent_id = $2
returning agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
