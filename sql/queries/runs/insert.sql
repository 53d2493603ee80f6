-- A run without a conversation, with its job, whose queue, name, payload and attempts come last.
with payload as (
  insert into run_payloads (tenant_id, run_id, input) values ($1, $2, $14)
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) values ($1, $2, 1, $15, $16, $13)
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
  agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq)
values ($1, $2, $3, $4, $5, 'queued', $6, $2, $7, $8, $9, $10, $11, $12, $13, job_enqueue_one(p_queue => $17, p_name => $18, p_payload => $19, p_priority => 1::smallint, p_max_attempts => $20, p_fairness_key => $1::uuid::text), 1)
