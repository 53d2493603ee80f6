select tenant_id from tenants where tenant_id = $1 for no key update
