select identity_provider_id
from identities
where tenant_id = $1 and user_id = $2 and identity_id = $3
