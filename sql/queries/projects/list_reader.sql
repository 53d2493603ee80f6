select r.project_id, r.name, r.created_by, r.created_at, r.updated_at,
  (select p.archived_at from projects p where p.tenant_id = $1 and p.project_id = r.project_id) as archived_at
from readable_projects(of_tenant_id => $1, of_user_id => $2, after => $3, most => $4, newest_first => {{false|true}}) r
order by r.project_id {{asc|desc}}
