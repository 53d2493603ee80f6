update identity_providers
set retired_at = $3, updated_at = $3
where tenant_id = $1 and identity_provider_id = $2
