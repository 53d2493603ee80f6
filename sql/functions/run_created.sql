-- The data of the event `run.created`: of an agent's turn with `streaming`, where a check stands at `output`. `held`: readers get
-- text after its verdict.
create function run_created(of_tenant_id uuid, of_project_id uuid, of_agent_id uuid, of_version text, data json) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  streaming text;
begin
  if of_agent_id is null then
    return data;
  end if;
  select case when bool_or(c.streaming = 'held') then 'held' when bool_or(true) then 'unchecked' end into streaming
  from (
    select v.guardrails, v.streaming from agent_versions v
    where v.tenant_id = of_tenant_id and v.agent_id = of_agent_id and v.version = of_version
    union all
    select p -> 'guardrails', p ->> 'streaming'
    from json_array_elements(policies_of(of_tenant_id => of_tenant_id, of_project_id => of_project_id)) p
  ) c
  where exists (
    select from json_array_elements(c.guardrails) g cross join json_array_elements_text(g -> 'at') a where a = 'output');
  if streaming is null then
    return data;
  end if;
  return (left(data::text, -1) || ',"streaming":"' || streaming || '"}')::json;
end
$$;
