-- What a run of a flow stands on when it is taken up: its newest step and where it stood then, once it has begun; the tools that
-- its definition names; the run of the flow that it is, or is a branch of (`own`), and how many flows and turns are nested from
-- the root to this one. Of a branch also where its parent stands, which waits for it, so nothing changes that.
--
-- A state that has an error alone is of a run that failed before its first step. Old programs wrote JSON nulls beside it.
-- A function, so that its plans are kept: each part is found by its key.
create function flow_load(
  of_tenant_id uuid, of_run_id uuid, has_begun boolean, tool_names text[], tool_ids uuid[],
  out step integer, out kind text, out name text, out path text, out format smallint, out status text, out attempt integer,
  out failures integer, out request json, out result json, out started_at timestamptz, out completed_at timestamptz,
  out state_format smallint, out state_frames json, out state_data json, out state_context json, out state_tasks integer,
  out state_slots integer,
  out parent_format smallint, out parent_frames json, out parent_data json, out parent_context json, out parent_tasks integer,
  out parent_slots integer,
  out named_tools json, out branch text, out own_run_id uuid, out own_started_at timestamptz, out own_input json, out levels bigint
)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  at_run_id uuid := of_run_id;
  one record;
begin
  if has_begun then
    select s.step, s.kind, s.name, s.path, s.format, s.status, s.attempt, s.failures, s.request, s.result, s.started_at,
      s.completed_at
    into step, kind, name, path, format, status, attempt, failures, request, result, started_at, completed_at
    from run_steps s where s.tenant_id = of_tenant_id and s.run_id = of_run_id order by s.step desc limit 1;
    select f.format, f.frames, f.data, f.context, f.tasks, f.slots
    into state_format, state_frames, state_data, state_context, state_tasks, state_slots
    from flow_states f
    where f.tenant_id = of_tenant_id and f.run_id = of_run_id and f.format is not null and f.frames::text <> 'null';
  end if;
  if cardinality(tool_ids) > 0 then
    select json_agg(tool_definition(of_tool => t, called => w.name)) into named_tools
    from unnest(tool_names, tool_ids) w (name, id) join tools t on t.tenant_id = of_tenant_id and t.tool_id = w.id;
  end if;
  levels := 0;
  while at_run_id is not null loop
    select r.parent_run_id, r.branch, coalesce(r.started_at, r.created_at) as began into one
    from runs r where r.tenant_id = of_tenant_id and r.run_id = at_run_id;
    if one.branch is null then
      levels := levels + 1;
      if own_run_id is null then
        own_run_id := at_run_id;
        own_started_at := one.began;
      end if;
    elsif at_run_id = of_run_id then
      branch := one.branch;
      select f.format, f.frames, f.data, f.context, f.tasks, f.slots
      into parent_format, parent_frames, parent_data, parent_context, parent_tasks, parent_slots
      from flow_states f
      where f.tenant_id = of_tenant_id and f.run_id = one.parent_run_id and f.format is not null and f.frames::text <> 'null';
    end if;
    at_run_id := one.parent_run_id;
  end loop;
  select p.input into own_input from run_payloads p where p.tenant_id = of_tenant_id and p.run_id = own_run_id;
end
$$;
