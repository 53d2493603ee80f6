select project_id, name, created_by, created_at, updated_at
from readable_projects(of_tenant_id => $1, of_user_id => $2, after => $3, most => $4, newest_first => {{false|true}})
order by project_id {{asc|desc}}
