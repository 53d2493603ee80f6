select tenant_id
from identity_providers
where identity_provider_id = $1 and managed_by = $2 and retired_at is null
