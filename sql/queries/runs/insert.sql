-- A run with its job, whose queue, name, payload and attempts come last. One conversation has one turn at a time: no row
-- when another is under way there.
with turn as (
  update conversations set active_run_id = $2, last_position = last_position + 1
  where tenant_id = $1 and conversation_id = $11 and active_run_id is null
  returning last_position
), run as (
  insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run,
    agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq)
  select $1, $2, $3, $4, $5, 'queued', $6, $7, $8, $9, $10, $11, $12, $13, $14, job.id, 1
  from job_enqueue(array[$19::text], array[$20::text], array[$21::text], array[1::smallint], array[0::bigint], array[$22::integer],
    array[null::text], array[null::integer]) job (id)
  where $11::uuid is null or exists (select from turn)
  returning tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run, agent_id,
    agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at, started_at,
    completed_at, last_seq, calls, cost_usd::float8, prompt_tokens, completion_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens
), payload as (
  insert into run_payloads (tenant_id, run_id, input) select $1, run_id, $15 from run
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) select $1, run_id, 1, $16, $17, $14 from run
), message as (
  insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
  select $1, $11, last_position, 'user', $18, $2, $14 from turn
)
select * from run
