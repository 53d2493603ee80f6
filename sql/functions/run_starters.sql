-- Who started a run, and who started those that it retries.
create function run_starters(of_tenant_id uuid, of_run_id uuid) returns uuid[]
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return (
    with recursive tries as (
      select r.retry_of, r.created_by from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id
      union all
      select r.retry_of, r.created_by
      from tries t join runs r on r.tenant_id = of_tenant_id and r.run_id = t.retry_of
    )
    select coalesce(array_agg(distinct t.created_by), '{}') from tries t
  );
end
$$;
