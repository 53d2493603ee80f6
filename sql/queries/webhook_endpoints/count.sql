select count(*)
from webhook_endpoints
where tenant_id = $1 and unregistered_at is null
