insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
values ($1, $2, $3, $4, $5)
