insert into orgs (tenant_id, org_id, name, created_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $5)
on conflict (tenant_id, name) do nothing
returning org_id, name, created_by, created_at, updated_at
