-- One registration at a time, so that the bound holds; nothing else waits for this lock.
select 1
from tenants
where tenant_id = $1
for no key update
