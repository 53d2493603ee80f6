-- A run without a conversation, with its job, whose queue, name, payload and attempts come last.
with payload as (
  insert into run_payloads (tenant_id, run_id, input) values ($1, $2, $15)
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) values ($1, $2, 1, $16, $17, $14)
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, dry_run,
  agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq)
values ($1, $2, $3, $4, $5, 'queued', $6, $7, $8, $9, $10, $11, $12, $13, $14, job_enqueue_one($18, $19, $20, 1::smallint, $21), 1)
