delete from identity_provider_domains
where tenant_id = $1 and identity_provider_id = $2
