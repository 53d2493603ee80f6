-- Into which of these projects these people have a way that is not a tenant admin's.
select distinct w.tenant_id, w.user_id, w.project_id
from project_ways w
where w.tenant_id = any ($1::uuid[]) and w.user_id = any ($2::uuid[]) and w.project_id = any ($3::uuid[])
