-- How many flows and turns are nested, from the root of a tree of runs to this one. A branch is a part of its flow.
-- A function, so that a statement that does not need it prepares nothing for it.
create function run_levels(of_tenant_id uuid, of_run_id uuid) returns bigint
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return (
    with recursive up as (
      select r.run_id, r.parent_run_id, r.branch from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id
      union all
      select r.run_id, r.parent_run_id, r.branch
      from up u join runs r on r.tenant_id = of_tenant_id and r.run_id = u.parent_run_id
    )
    select count(*) from up u where u.branch is null
  );
end
$$;
