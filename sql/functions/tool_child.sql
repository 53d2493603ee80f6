-- What a call of a tool runs, of a tool that is an agent or a flow: the version that the tool names, else the live one, else the
-- latest. Null where it is archived or has no version.
-- A function, so that a statement that does not need it prepares nothing for it.
create function tool_child(of_tool tools) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  if of_tool.target = 'agent' then
    return (
      select json_build_object('kind', 'agent', 'id', a.agent_id, 'version', v.version,
        'via', case when of_tool.agent_version is not null then 'explicit' when a.live_version is not null then 'live' else 'latest' end)
      from agents a
      join agent_versions v on v.tenant_id = a.tenant_id and v.agent_id = a.agent_id
        and v.version = coalesce(of_tool.agent_version, a.live_version, a.latest_version)
      where a.tenant_id = of_tool.tenant_id and a.agent_id = of_tool.agent_id and a.archived_at is null
    );
  end if;
  if of_tool.target <> 'flow' then
    raise exception 'calls of a tool with the target % run nothing', of_tool.target;
  end if;
  return (
    select json_build_object('kind', 'flow', 'flowId', f.flow_id, 'version', v.version)
    from flows f
    join flow_versions v on v.tenant_id = f.tenant_id and v.id = f.id
      and v.version = coalesce(of_tool.flow_version, f.live_version, f.latest_version)
    where f.tenant_id = of_tool.tenant_id and f.project_id = of_tool.project_id and f.flow_id = of_tool.flow_id
      and f.archived_at is null
  );
end
$$;
