-- The roles of people of several tenants, each named with the tenant of its credential.
select r.tenant_id, r.user_id, r.role
from unnest($1::uuid[], $2::uuid[]) asked (tenant_id, user_id)
join reviewers r on r.tenant_id = asked.tenant_id and r.user_id = asked.user_id
join users u on u.tenant_id = r.tenant_id and u.user_id = r.user_id and u.deactivated_at is null
