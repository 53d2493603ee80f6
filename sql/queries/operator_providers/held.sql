select * from identity_providers_of(tenant => $1)
where managed_by = 'operator'
order by identity_provider_id
