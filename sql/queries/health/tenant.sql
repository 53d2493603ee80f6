select
  (select tenant_id from tenants order by created_at, tenant_id limit 1) as oldest,
  exists (select from tenants where tenant_id = $1) as is_there
