select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run, agent_id, agent_version,
  conversation_id, via, failure_message, cancel_requested_at, created_by, created_at, started_at, completed_at,
  last_seq, calls, cost_usd::float8, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from runs
  where tenant_id = $1 and project_id = way.readable_id
    and run_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
    and ($5::text is null or status = $5)
    and ($6::text is null or origin = $6)
  order by run_id asc
  limit $4
) one
order by run_id asc
limit $4
