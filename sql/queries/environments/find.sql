select environment, name, value, created_by, created_at, updated_by, updated_at
from environment_variables
where tenant_id = $1 and environment = $2 and name = $3
