insert into reviewers (tenant_id, user_id, role, created_by, created_at)
values ($1, $2, $3, $4, $5)
on conflict (tenant_id, user_id, role) do nothing
