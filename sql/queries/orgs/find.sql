select org_id, name, created_by, created_at, updated_at
from orgs
where tenant_id = $1 and org_id = $2
