select count(*) from tenants t
where not exists (select from authz_stores s where s.tenant_id = t.tenant_id)
