select secret_use_id, name, project_id, target, created_by, created_at
from secret_uses
where tenant_id = $1
  and ($2::text is null or name = $2)
  and ($3::uuid is null or secret_use_id {{>|<}} $3)
order by secret_use_id {{asc|desc}}
limit $4
