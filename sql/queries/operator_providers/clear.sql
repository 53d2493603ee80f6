-- Those that stay get their names and domains again: two may have swapped them.
with cleared as (
  delete from identity_provider_domains where tenant_id = $1 and managed_by = 'operator'
)
update identity_providers
set name = identity_provider_id::text
where tenant_id = $1 and managed_by = 'operator'
