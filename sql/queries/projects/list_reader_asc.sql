select project_id, name, created_by, created_at, updated_at
from projects
where tenant_id = $1
  and project_id in (select project_id from project_ways where tenant_id = $1 and user_id = $2)
  and project_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
order by project_id asc
limit $4
