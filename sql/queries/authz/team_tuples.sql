select 'tenant:' || tenant_id as "user", 'tenant' as relation, 'team:' || team_id as object
from teams
where tenant_id = $1 and team_id = any($2)
union all
select 'user:' || t.user_id, t.role, 'team:' || t.team_id
from team_memberships t
join users u on u.tenant_id = t.tenant_id and u.user_id = t.user_id and u.deactivated_at is null
where t.tenant_id = $1 and t.team_id = any($2)
