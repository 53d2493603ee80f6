-- What a check stands on, and whether nothing at all of the tenant is left to be told: read beside a row in the row's own
-- statement. Where something is left, `guard` says whether the check depends on it. The first in order, and not whether one
-- exists: the planner takes a third of all objects for such, and would look for the first of them through the whole table.
select s.store_id, s.model_id, s.model_version,
  (
    select o.object from authz_objects o
    where o.tenant_id = s.tenant_id and o.applied < o.desired
    order by o.object limit 1
  ) is null as is_in_sync
from authz_stores s
where s.tenant_id = $1
