select t.tenant_id
from tenants t
where t.tenant_id = any ($1::uuid[])
  or exists (
    select from identity_providers p
    where p.tenant_id = t.tenant_id and p.managed_by = 'operator' and p.retired_at is null
  )
order by t.tenant_id
