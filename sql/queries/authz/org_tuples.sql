select 'tenant:' || tenant_id as "user", 'tenant' as relation, 'org:' || org_id as object
from orgs
where tenant_id = $1 and org_id = any($2)
union all
select 'user:' || a.user_id, 'admin', 'org:' || a.org_id
from org_admins a
join users u on u.tenant_id = a.tenant_id and u.user_id = a.user_id and u.deactivated_at is null
where a.tenant_id = $1 and a.org_id = any($2)
