-- The store's row is held too: whoever puts another store in its place waits for this.
select o.desired, o.applied, s.store_id, s.model_id, s.model_version
from authz_objects o
join authz_stores s on s.tenant_id = o.tenant_id
where o.tenant_id = $1 and o.object = $2
for update of o for share of s
