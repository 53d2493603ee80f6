delete from project_memberships
where tenant_id = $1 and project_id = $2 and user_id = $3
