select user_id, kind, deactivated_at is not null as is_deactivated
from users
where tenant_id = $1 and email_key = $2
for share
