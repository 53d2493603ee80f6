select project_id, name, created_by, created_at, updated_at, archived_at
from projects
where tenant_id = $1 and project_id = $2
