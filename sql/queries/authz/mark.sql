insert into authz_objects (tenant_id, object)
select $1, object from unnest($2::text[]) with ordinality named (object, place) order by place
on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1
