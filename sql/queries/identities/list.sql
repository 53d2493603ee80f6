select i.identity_id, i.identity_provider_id, p.name as provider_name, i.subject, i.email_then, i.bound_at, i.last_used_at
from identities i
join identity_providers p on p.tenant_id = i.tenant_id and p.identity_provider_id = i.identity_provider_id
where i.tenant_id = $1 and i.user_id = $2
  and ($3::uuid is null or i.identity_id {{>|<}} $3)
order by i.identity_id {{asc|desc}}
limit $4
