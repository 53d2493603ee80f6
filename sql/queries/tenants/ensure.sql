insert into tenants (tenant_id, name, created_at)
values ($1, $2, $3)
on conflict (tenant_id) do nothing
