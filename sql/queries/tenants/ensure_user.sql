insert into users (tenant_id, user_id, display_name, created_at)
values ($1, $2, $3, $4)
on conflict (tenant_id, user_id) do nothing
