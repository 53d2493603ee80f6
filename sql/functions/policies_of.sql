-- The guardrails of the policies that stand for a project's runs: the tenant's first, then the project's own.
create function policies_of(of_tenant_id uuid, of_project_id uuid) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select coalesce(json_agg(json_build_object('origin', case when p.project_id is null then 'tenant' else 'project' end,
      'version', p.version, 'guardrails', p.guardrails, 'streaming', p.streaming) order by p.project_id nulls first), '[]')
    from ((select * from policies t where t.tenant_id = of_tenant_id and t.project_id is null order by t.version desc limit 1)
      union all
      (select * from policies o where o.tenant_id = of_tenant_id and o.project_id = of_project_id order by o.version desc limit 1)) p
    where json_array_length(p.guardrails) > 0
  );
end
$$;
