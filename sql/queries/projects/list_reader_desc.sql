select project_id, name, created_by, created_at, updated_at
from projects
where tenant_id = $1
  and project_id in (select project_id from project_ways where tenant_id = $1 and user_id = $2)
  and project_id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
order by project_id desc
limit $4
