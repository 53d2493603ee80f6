update projects
set name = $3, updated_at = $4
where tenant_id = $1 and project_id = $2
returning project_id, name, created_by, created_at, updated_at, archived_at
