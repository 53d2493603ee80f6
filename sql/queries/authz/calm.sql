-- What a check stands on, and whether nothing at all of the tenant is left to be told: read beside a row in the row's own
-- statement. Where something is left, `guard` says whether the check depends on it.
select s.store_id, s.model_id, s.model_version,
  not exists (select from authz_objects o where o.tenant_id = s.tenant_id and o.applied < o.desired)
from authz_stores s
where s.tenant_id = $1
