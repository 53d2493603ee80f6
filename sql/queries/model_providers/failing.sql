-- Of the tenant's newest calls, those that failed after the last one of their provider that did not. They are found by the ids of
-- their runs, so that no more are read than are looked at.
with newest as materialized (
  select model_provider_id, outcome, failure, completed_at
  from run_model_calls
  where tenant_id = $1 and run_id > $2
  order by run_id desc, step desc, attempt desc
  limit $3
),
completed as (
  select model_provider_id, max(completed_at) as last_at
  from newest
  where outcome = 'completed'
  group by model_provider_id
)
select n.model_provider_id, count(*) as calls, min(n.completed_at) as first_at, max(n.completed_at) as last_at,
  (array_agg(n.failure order by n.completed_at desc))[1] as failure
from newest n
left join completed c on c.model_provider_id = n.model_provider_id
where n.outcome = 'failed' and (c.last_at is null or n.completed_at > c.last_at)
group by n.model_provider_id
