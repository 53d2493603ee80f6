-- How a run is started, with the variables of the environment as they are now: they stay so for the run and those below it.
create function run_options(of_tenant_id uuid, of_environment text, given json) returns json
language sql stable parallel safe as $$
  select case when found.env is null then given else (
    select json_object_agg(part.key, part.value)
    from (
      select o.key, o.value from json_each(coalesce(given, '{}')) o
      union all
      select 'env', found.env
    ) part
  ) end
  from (
    select json_object_agg(v.name, v.value order by v.name) as env
    from environment_variables v
    where v.tenant_id = of_tenant_id and v.environment = of_environment
  ) found
$$;
