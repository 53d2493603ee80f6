-- The store and model for a check, and whether all changes of the tenant are applied; read in the statement of the object's row.
-- If some are not applied, `guard` says whether the check depends on them. It selects the first such object in index order instead
-- of testing for existence: the planner estimates a third of all objects, and would scan the table for the first one.
select s.store_id, s.model_id, s.model_version,
  (
    select o.object from authz_objects o
    where o.tenant_id = s.tenant_id and o.applied < o.desired
    order by o.object limit 1
  ) is null as is_in_sync
from authz_stores s
where s.tenant_id = $1
