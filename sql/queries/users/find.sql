select user_id, kind, email, display_name, tenant_role, created_by, created_at, deactivated_at
from users
where tenant_id = $1 and user_id = $2
