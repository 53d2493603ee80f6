insert into team_grants (tenant_id, project_id, team_id, role, created_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $6)
