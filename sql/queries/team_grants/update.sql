update team_grants
set role = $4, updated_at = $5
where tenant_id = $1 and project_id = $2 and team_id = $3 and role <> $4
