select tenant_id from tenants limit 2
