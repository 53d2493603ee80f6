select 'tenant:' || tenant_id as "user", 'tenant' as relation, 'project:' || project_id as object
from projects
where tenant_id = $1 and project_id = any($2)
union all
select 'org:' || org_id, 'org', 'project:' || project_id
from projects
where tenant_id = $1 and project_id = any($2) and org_id is not null
union all
select 'user:' || user_id, role, 'project:' || project_id
from project_ways
where tenant_id = $1 and project_id = any($2) and via = 'direct'
union all
select 'team:' || team_id || '#member', role, 'project:' || project_id
from team_grants
where tenant_id = $1 and project_id = any($2)
