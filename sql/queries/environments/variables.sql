select environment, name, value, created_by, created_at, updated_by, updated_at
from environment_variables
where tenant_id = $1 and environment = $2
  and ($3::text is null or name collate "C" > $3 collate "C")
order by name collate "C"
limit $4
