select exists (select from team_memberships where tenant_id = $1 and user_id = $2)
