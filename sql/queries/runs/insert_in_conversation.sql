-- As runs/insert, with the user message, which comes last. One conversation has one turn at a time: no row when another is
-- under way there.
with turn as (
  update conversations set active_run_id = $2, last_position = last_position + 1
  where tenant_id = $1 and conversation_id = $10 and active_run_id is null and erasure_requested_at is null
  returning last_position
), payload as (
  insert into run_payloads (tenant_id, run_id, input) select $1, $2, $14 from turn
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) select $1, $2, 1, $15, $16, $13 from turn
), message as (
  insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
  select $1, $10, last_position, 'user', $21, $2, $13 from turn
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
  agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq)
select $1, $2, $3, $4, $5, 'queued', $6, $2, $7, $8, $9, $10, $11, $12, $13, job_enqueue_one(p_queue => $17, p_name => $18, p_payload => $19, p_priority => 1::smallint, p_max_attempts => $20, p_fairness_key => $1::uuid::text), 1
from turn
