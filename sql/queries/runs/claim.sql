-- Whoever holds an older epoch can write nothing from here on.
update runs set lease_epoch = lease_epoch + 1, status = 'running', started_at = coalesce(started_at, $3)
where tenant_id = $1 and run_id = $2 and status in ('queued', 'running', 'waiting')
returning tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run, agent_id, agent_version,
  conversation_id, via, failure_message, cancel_requested_at, created_by, created_at, started_at, completed_at,
  last_seq, calls, cost_usd::float8, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens, lease_epoch
