select 'user:' || user_id as "user", tenant_role as relation, 'tenant:' || tenant_id as object
from users
where tenant_id = $1 and deactivated_at is null
