select from identity_providers
where tenant_id = $1 and managed_by = 'operator'
order by identity_provider_id
for update
