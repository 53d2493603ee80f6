delete from identity_provider_groups
where tenant_id = $1 and identity_provider_id = $2
