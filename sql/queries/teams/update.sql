update teams
set name = coalesce($3, name), description = coalesce($4, description), updated_at = $5
where tenant_id = $1 and team_id = $2
returning team_id, name, slug, description, created_by, created_at, updated_at
