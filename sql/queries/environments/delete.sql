delete from environment_variables
where tenant_id = $1 and environment = $2 and name = $3
