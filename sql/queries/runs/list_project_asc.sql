select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run, agent_id, agent_version,
  conversation_id, via, failure_message, cancel_requested_at, created_by, created_at, started_at, completed_at,
  last_seq, calls, cost_usd::float8, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens
from runs
where tenant_id = $1 and project_id = $2
  and ($3::uuid is null or agent_id = $3)
  and ($4::uuid is null or conversation_id = $4)
  and ($5::text is null or status = $5)
  and ($6::text is null or origin = $6)
  and ($7::uuid is null or run_id > $7)
order by run_id limit $8
