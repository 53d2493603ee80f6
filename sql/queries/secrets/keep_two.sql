delete from secret_versions
where tenant_id = $1 and environment = $2 and name = $3 and version < $4 - 1
