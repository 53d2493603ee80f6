select 1
from webhook_endpoints
where tenant_id = $1 and endpoint_id = $2 and unregistered_at is null
for update
