select user_id
from users
where tenant_id = $1
  and kind = 'service-account'
  and display_name = $2
  and user_id <> $3
  and deactivated_at is null
