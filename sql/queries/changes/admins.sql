-- Who of these people is an admin of their tenant.
select u.tenant_id, u.user_id
from unnest($1::uuid[], $2::uuid[]) person (tenant_id, user_id)
join users u on u.tenant_id = person.tenant_id and u.user_id = person.user_id
where u.tenant_role = 'admin' and u.deactivated_at is null
