-- The tools of an agent's version, in order.
-- A function, so that a statement that does not need it prepares nothing for it.
create function agent_tools(of_tenant_id uuid, of_agent_id uuid, of_version text) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select coalesce(json_agg(tool_definition(of_tool => t, called => t.name) order by g.position), '[]')
    from agent_version_tools g join tools t on t.tenant_id = g.tenant_id and t.tool_id = g.tool_id
    where g.tenant_id = of_tenant_id and g.agent_id = of_agent_id and g.version = of_version
  );
end
$$;
