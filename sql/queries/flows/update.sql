update flows
set title = coalesce($3, title), description = coalesce($4, description), updated_at = $5
where tenant_id = $1 and id = $2
returning id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
