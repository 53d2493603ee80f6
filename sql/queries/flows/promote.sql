update flows
set live_version = $3, updated_at = $4
where tenant_id = $1 and id = $2
returning id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
