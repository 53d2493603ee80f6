select 'user:' || user_id, tenant_role, 'tenant:' || tenant_id
from users
where tenant_id = $1 and deactivated_at is null
