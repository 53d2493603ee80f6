delete from team_grants
where tenant_id = $1 and project_id = $2 and team_id = $3
