-- As runs/insert, with the user message. One conversation has one turn at a time: no row when another is
-- under way there, nor where the project or the agent is archived.
with open as (
  select where not exists (select from projects where tenant_id = $1 and project_id = $3 and archived_at is not null)
    and not exists (select from agents where tenant_id = $1 and agent_id = $8 and archived_at is not null)
), turn as (
  update conversations set active_run_id = $2, last_position = last_position + 1
  where tenant_id = $1 and conversation_id = $10 and active_run_id is null and erasure_requested_at is null
    and exists (select from open)
  returning last_position
), payload as (
  insert into run_payloads (tenant_id, run_id, input, options)
  select $1, $2, $14, run_options(of_tenant_id => $1, of_environment => $24, given => $22) from turn
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) select $1, $2, 1, $15,
    run_created(of_tenant_id => $1, of_project_id => $3, of_agent_id => $8, of_version => $9, data => $16), $13
  from turn
), message as (
  insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
  select $1, $10, last_position, 'user', $25, $2, $13 from turn
), label as (
  insert into run_labels (tenant_id, project_id, key, value, run_id)
  select $1, $3, key, value, $2 from turn, json_each_text($21::json)
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
  agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq, labels, request_id)
select $1, $2, $3, $4, $5, 'queued', $6, $2, $7, $8, $9, $10, $11, $12, $13, job_enqueue_one(p_queue => $17, p_name => $18, p_payload => $19, p_priority => 1::smallint, p_max_attempts => $20, p_fairness_key => $1::uuid::text), 1, $21, $23
from turn
