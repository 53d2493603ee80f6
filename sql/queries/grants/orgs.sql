select o.org_id, o.name
from org_admins a
join orgs o on o.tenant_id = a.tenant_id and o.org_id = a.org_id
join users u on u.tenant_id = a.tenant_id and u.user_id = a.user_id and u.deactivated_at is null
where a.tenant_id = $1 and a.user_id = $2
order by o.org_id
limit $3
