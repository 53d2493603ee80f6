-- What the model calls of readable runs used, grouped. Each call stands once, in the run that made it: what a run's own row says
-- includes its children. `offset 0` keeps the planner from reading the runs of other projects: project by project those of the
-- time are read, and their calls.
select
  case when $8::boolean then (r.created_at at time zone 'UTC')::date end as day,
  case when $9::boolean then r.project_id end as project_id,
  case when $10::boolean then r.agent_id end as agent_id,
  case when $11::boolean then c.model_provider_id end as model_provider_id,
  case when $11::boolean then c.model end as model,
  count(*) as calls,
  count(*) - count(c.cost_usd) as calls_without_cost,
  coalesce(sum(c.cost_usd), 0)::float8 as cost_usd,
  coalesce(sum(c.prompt_tokens), 0)::bigint as prompt_tokens,
  coalesce(sum(c.completion_tokens), 0)::bigint as completion_tokens,
  coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read_tokens,
  coalesce(sum(c.cache_write_tokens), 0)::bigint as cache_write_tokens,
  coalesce(sum(c.reasoning_tokens), 0)::bigint as reasoning_tokens
from (
  select p.project_id as readable_id from projects p
  where p.tenant_id = $1 and $3::uuid is null and ($2::uuid is null or p.project_id = $2)
  union
  select w.project_id from project_ways w
  where w.tenant_id = $1 and w.user_id = $3 and ($2::uuid is null or w.project_id = $2)
) readable
cross join lateral (
  select * from runs
  where tenant_id = $1 and project_id = readable.readable_id and run_id > $4 and run_id < $5
    and created_at >= $6 and created_at < $7
    and ($12::uuid is null or agent_id = $12)
  offset 0
) r
join run_model_calls c on c.tenant_id = $1 and c.run_id = r.run_id
where c.run_id > $4 and c.run_id < $5
group by 1, 2, 3, 4, 5
order by 1, 2, 3, 4, 5
limit $13
