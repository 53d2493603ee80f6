select g.project_id, p.name as project_name, g.team_id, t.name as team_name, g.role, g.created_by, g.created_at, g.updated_at
from team_grants g
join projects p on p.tenant_id = g.tenant_id and p.project_id = g.project_id
join teams t on t.tenant_id = g.tenant_id and t.team_id = g.team_id
where g.tenant_id = $1 and g.project_id = $2 and g.team_id = $3
