insert into users (tenant_id, user_id, kind, email, email_key, display_name, tenant_role, created_by, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (tenant_id, email_key) do nothing
returning user_id, kind, email, display_name, tenant_role, created_by, created_at, deactivated_at
