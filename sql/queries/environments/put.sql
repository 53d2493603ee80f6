insert into environment_variables (tenant_id, environment, name, value, created_by, created_at, updated_by, updated_at)
values ($1, $2, $3, $4, $5, $6, $5, $6)
on conflict (tenant_id, environment, name) do update set value = excluded.value, updated_by = $5, updated_at = $6
returning environment, name, value, created_by, created_at, updated_by, updated_at
