select $4 and exists (
  select from users
  where tenant_id = $1 and user_id = $3 and tenant_role = 'admin' and deactivated_at is null
) or exists (
  select from project_ways
  where tenant_id = $1 and project_id = $2 and user_id = $3 and role in ('owner', 'admin')
)
