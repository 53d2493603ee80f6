insert into org_admins (tenant_id, org_id, user_id, joined_at)
values ($1, $2, $3, $4)
on conflict (tenant_id, org_id, user_id) do nothing
