-- What the model calls of readable runs used, grouped. Each call stands once, in the run that made it: what a run's own row says
-- includes its children. A call has the project, the agent and the time of its run, so runs are not read. Only calls from before
-- migration 0040 are joined to their runs. Of all projects of the tenant, unless a project or a reader is given.
--
-- It is planned for its arguments, because the time says how much is read. Groups are few, which PostgreSQL cannot know: it would
-- sort all calls.
create function usage_sum(
  of_tenant_id uuid, of_project_id uuid, reader_id uuid, low uuid, high uuid, since timestamptz, until timestamptz,
  by_day boolean, by_project boolean, by_agent boolean, by_model boolean, of_agent_id uuid, most bigint
)
returns table (
  day date, project_id uuid, agent_id uuid, model_provider_id uuid, model text, calls bigint, calls_without_cost bigint,
  cost_usd float8, prompt_tokens bigint, completion_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint,
  reasoning_tokens bigint
)
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = off as $$
#variable_conflict use_column
declare
  readable uuid[] := array(
    select p.project_id from projects p
    where p.tenant_id = of_tenant_id and reader_id is null and (of_project_id is null or p.project_id = of_project_id)
    union
    select w.project_id from project_ways w
    where w.tenant_id = of_tenant_id and w.user_id = reader_id and (of_project_id is null or w.project_id = of_project_id)
  );
begin
  return query
  select
    case when by_day then (c.run_created_at at time zone 'UTC')::date end,
    case when by_project then c.project_id end,
    case when by_agent then c.agent_id end,
    case when by_model then c.model_provider_id end,
    case when by_model then c.model end,
    count(*),
    count(*) - count(c.cost_usd),
    coalesce(sum(c.cost_usd), 0)::float8,
    coalesce(sum(c.prompt_tokens), 0)::bigint,
    coalesce(sum(c.completion_tokens), 0)::bigint,
    coalesce(sum(c.cache_read_tokens), 0)::bigint,
    coalesce(sum(c.cache_write_tokens), 0)::bigint,
    coalesce(sum(c.reasoning_tokens), 0)::bigint
  from (
    select n.project_id, n.agent_id, n.run_created_at, n.model_provider_id, n.model, n.cost_usd, n.prompt_tokens,
      n.completion_tokens, n.cache_read_tokens, n.cache_write_tokens, n.reasoning_tokens
    from run_model_calls n
    where n.tenant_id = of_tenant_id and n.run_id > low and n.run_id < high and n.project_id is not null
    union all
    select r.project_id, r.agent_id, r.created_at, o.model_provider_id, o.model, o.cost_usd, o.prompt_tokens,
      o.completion_tokens, o.cache_read_tokens, o.cache_write_tokens, o.reasoning_tokens
    from run_model_calls o
    join runs r on r.tenant_id = o.tenant_id and r.run_id = o.run_id and r.run_id > low and r.run_id < high
    where o.tenant_id = of_tenant_id and o.run_id > low and o.run_id < high and o.project_id is null
  ) c
  where c.run_created_at >= since and c.run_created_at < until and c.project_id = any (readable)
    and (of_agent_id is null or c.agent_id = of_agent_id)
  group by 1, 2, 3, 4, 5
  order by 1, 2, 3, 4, 5
  limit most;
end
$$;
