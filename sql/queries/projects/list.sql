select project_id, name, created_by, created_at, updated_at, archived_at
from projects
where tenant_id = $1 and (archived_at is not null) = $4
  and ($2::uuid is null or project_id {{>|<}} $2)
order by project_id {{asc|desc}}
limit $3
