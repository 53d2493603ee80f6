-- Child runs of a run whose row this transaction has written, with its labels, their rows among its children, their payloads,
-- first events and jobs.
with parent as (
  select project_id, root_run_id, dry_run, created_by, labels from runs where tenant_id = $1 and run_id = $2
), child as (
  select *
  from unnest($4::uuid[], $5::integer[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::text[], $11::uuid[],
    $12::text[], $13::text[], $14::json[], $15::text[], $16::json[], $17::text[], $21::uuid[])
    c (run_id, slot, path, parent_step, branch, flow_id, flow_version, agent_id, agent_version, via, input, kind, data, job,
      conversation_id)
), slot as (
  insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state)
  select $1, $2, c.slot, c.run_id, c.path, 'started' from child c
), payload as (
  insert into run_payloads (tenant_id, run_id, input) select $1, c.run_id, c.input from child c
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, c.run_id, 1, c.kind,
    run_created(of_tenant_id => $1, of_project_id => p.project_id, of_agent_id => c.agent_id, of_version => c.agent_version,
      data => c.data), $3
  from child c cross join parent p
), label as (
  insert into run_labels (tenant_id, project_id, key, value, run_id)
  select $1, p.project_id, l.key, l.value, c.run_id
  from child c cross join parent p cross join json_each_text(p.labels) l
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_step,
  parent_slot, root_run_id, branch, dry_run, agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq, labels)
select $1, c.run_id, p.project_id, c.flow_id, c.flow_version, 'queued', 'run', $2, c.parent_step,
  c.slot, p.root_run_id, c.branch, p.dry_run, c.agent_id, c.agent_version, c.conversation_id, c.via, p.created_by, $3,
  job_enqueue_one(p_queue => $18, p_name => $19, p_payload => c.job, p_priority => 1::smallint, p_max_attempts => $20,
    p_fairness_key => $1::uuid::text), 1, p.labels
from child c cross join parent p
