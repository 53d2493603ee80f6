select tenant_id from tenants where tenant_id > $1 order by tenant_id limit $2
