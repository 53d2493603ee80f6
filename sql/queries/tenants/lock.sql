-- Not the stronger lock: it would hold up every row that refers to the tenant.
select from tenants where tenant_id = $1 for no key update
