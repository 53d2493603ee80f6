select t.tenant_id from tenants t
where not exists (select from authz_stores s where s.tenant_id = t.tenant_id)
order by t.tenant_id
limit $1
