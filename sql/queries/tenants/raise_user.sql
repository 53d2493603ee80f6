with raised as (
  update users set tenant_role = 'admin'
  where tenant_id = $1 and user_id = $2
    and kind = 'person' and deactivated_at is null and tenant_role <> 'admin'
  returning user_id
)
select kind, deactivated_at is not null as is_deactivated, exists (select from raised) as is_raised
from users
where tenant_id = $1 and user_id = $2
