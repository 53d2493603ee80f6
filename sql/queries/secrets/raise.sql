update secrets
set version = version + 1, updated_at = $5
where tenant_id = $1 and environment = $2 and name = $3 and version = $4
