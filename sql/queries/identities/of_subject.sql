select identity_id, user_id
from identities
where tenant_id = $1 and identity_provider_id = $2 and subject = $3
