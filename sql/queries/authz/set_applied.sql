update authz_objects set applied = desired where tenant_id = $1 and object = $2
