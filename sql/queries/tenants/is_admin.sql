select exists (
  select from users
  where tenant_id = $1 and user_id = $2 and tenant_role = 'admin' and deactivated_at is null
) as is_admin
