select * from identity_providers_of(tenant => $1)
where ($2::uuid is null or identity_provider_id {{>|<}} $2)
order by identity_provider_id {{asc|desc}}
limit $3
