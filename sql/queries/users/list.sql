select user_id, kind, email, display_name, tenant_role, created_by, created_at, deactivated_at
from users
where tenant_id = $1
  and kind = $2
  and ($3::text is null or tenant_role = $3)
  and ($4::boolean is null or (deactivated_at is null) = $4)
  and ($5::text is null or email_key = $5)
  and ($6::uuid is null or user_id {{>|<}} $6)
order by user_id {{asc|desc}}
limit $7
