insert into secrets (tenant_id, environment, name, version, created_by, created_at, updated_at)
values ($1, $2, $3, 1, $4, $5, $5)
on conflict (tenant_id, environment, name) do nothing
