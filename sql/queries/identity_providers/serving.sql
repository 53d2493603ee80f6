select identity_provider_id, name
from identity_providers
where tenant_id = $1 and managed_by = $2 and retired_at is null
order by name
