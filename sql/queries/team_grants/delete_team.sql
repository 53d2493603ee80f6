delete from team_grants
where tenant_id = $1 and team_id = $2
returning project_id
