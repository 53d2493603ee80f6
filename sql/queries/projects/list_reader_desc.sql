select project_id, name, created_by, created_at, updated_at
from readable_projects($1, $2, $3, $4, true)
order by project_id desc
