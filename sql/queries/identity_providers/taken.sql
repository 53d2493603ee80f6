select
  exists (
    select from identity_providers
    where tenant_id = $1 and managed_by = 'tenant' and identity_provider_id <> $2 and name = $3
  ) as has_name,
  exists (
    select from identity_providers
    where tenant_id = $1 and managed_by = 'tenant' and identity_provider_id <> $2 and issuer = $4 and client_id = $5
  ) as has_client,
  (
    select domain from identity_provider_domains
    where tenant_id = $1 and managed_by = 'tenant' and identity_provider_id <> $2 and domain = any ($6::text[])
    order by domain limit 1
  ) as domain,
  (
    select count(*) from identity_providers
    where tenant_id = $1 and managed_by = 'tenant' and identity_provider_id <> $2
  ) as others
