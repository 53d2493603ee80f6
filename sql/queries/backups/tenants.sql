select tenant_id
from tenants
order by created_at, tenant_id
limit $1
