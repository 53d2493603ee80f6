delete from team_memberships
where tenant_id = $1 and team_id = $2 and user_id = $3
