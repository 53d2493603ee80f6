delete from authz_objects where tenant_id = $1 and object = $2
