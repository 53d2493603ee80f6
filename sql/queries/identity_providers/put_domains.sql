insert into identity_provider_domains (tenant_id, managed_by, domain, identity_provider_id)
select p.tenant_id, p.managed_by, domain, p.identity_provider_id
from identity_providers p, unnest($3::text[]) as domain
where p.tenant_id = $1 and p.identity_provider_id = $2
