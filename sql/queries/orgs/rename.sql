update orgs
set name = $3, updated_at = $4
where tenant_id = $1 and org_id = $2
returning org_id, name, created_by, created_at, updated_at
