insert into authz_objects (tenant_id, object) values ($1, $2)
on conflict (tenant_id, object) do nothing
