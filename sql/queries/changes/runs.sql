-- Where these runs stand, of the tenants that somebody follows.
select tenant_id, run_id as id, project_id
from runs
where tenant_id = any ($1::uuid[]) and run_id = any ($2::uuid[])
