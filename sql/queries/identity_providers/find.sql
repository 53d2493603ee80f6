select * from identity_providers_of(tenant => $1)
where identity_provider_id = $2
