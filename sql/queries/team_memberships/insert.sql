insert into team_memberships (tenant_id, team_id, user_id, role, joined_at)
values ($1, $2, $3, $4, $5)
