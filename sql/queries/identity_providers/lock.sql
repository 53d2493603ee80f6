select from identity_providers
where tenant_id = $1 and identity_provider_id = $2 and retired_at is null
for update
