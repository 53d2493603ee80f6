select secret_use_id, name, project_id, target, created_by, created_at
from secret_uses
where tenant_id = $1 and secret_use_id = $2
