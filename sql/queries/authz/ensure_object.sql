-- Nothing is asked for that the comparison at the start has not told.
insert into authz_objects (tenant_id, object, desired) values ($1, $2, 0)
on conflict (tenant_id, object) do nothing
