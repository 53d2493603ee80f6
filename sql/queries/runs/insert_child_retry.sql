-- Takes up a run below a failed one: see insert_retry.sql. The new run stands at the same place of its new parent. No row where
-- its conversation has gone on.
with failed as (
  select f.* from runs f
  where f.tenant_id = $1 and f.run_id = $2 and f.parent_run_id is not null and f.status in ('failed', 'cancelled')
    and f.payload_erased_at is null
), turn as (
  update conversations c set active_run_id = $3
  from failed f
  where c.tenant_id = $1 and c.conversation_id = f.conversation_id and c.active_run_id is null
    and c.erasure_requested_at is null
    and exists (
      select from conversation_messages m
      where m.tenant_id = $1 and m.conversation_id = c.conversation_id and m.position = c.last_position
        and m.role = 'user' and m.run_id = f.run_id)
  returning c.conversation_id, c.last_position
), message as (
  update conversation_messages m set run_id = $3
  from turn
  where m.tenant_id = $1 and m.conversation_id = turn.conversation_id and m.position = turn.last_position
), retry as (
  select f.* from failed f where f.conversation_id is null or exists (select from turn)
), child as (
  insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state)
  select $1, $4, f.parent_slot, $3, c.path, 'started'
  from retry f
  join run_children c on c.tenant_id = $1 and c.parent_run_id = f.parent_run_id and c.slot = f.parent_slot
), payload as (
  insert into run_payloads (tenant_id, run_id, input)
  select $1, $3, p.input from retry join run_payloads p on p.tenant_id = $1 and p.run_id = $2
), step as (
  insert into run_steps (tenant_id, run_id, step, kind, name, path, status, attempt, failures, request, result, started_at,
    completed_at, format)
  select $1, $3, s.step, s.kind, s.name, s.path, s.status, s.attempt, s.failures,
    case s.step when $15 then $16 else s.request end, s.result, s.started_at, s.completed_at, s.format
  from retry join run_steps s on s.tenant_id = $1 and s.run_id = $2
  where s.step <= $8
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $3, e.n, e.kind, case e.kind
    when 'run.created' then run_created(of_tenant_id => $1, of_project_id => retry.project_id, of_agent_id => retry.agent_id,
      of_version => retry.agent_version, data => e.data)
    else e.data end, $7
  from retry, unnest($9::text[], $10::json[]) with ordinality e (kind, data, n)
), label as (
  insert into run_labels (tenant_id, project_id, key, value, run_id)
  select $1, retry.project_id, l.key, l.value, $3 from retry, json_each_text(retry.labels) l
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_step,
  parent_slot, root_run_id, branch, dry_run, agent_id, agent_version, conversation_id, via, created_by, created_at, job_id,
  last_seq, labels, retry_of)
select $1, $3, f.project_id, f.flow_id, f.flow_version, 'queued', f.origin, $4, f.parent_step,
  f.parent_slot, $5, f.branch, f.dry_run, f.agent_id, f.agent_version, f.conversation_id, f.via, $6, $7,
  job_enqueue_one(p_queue => $11, p_name => $12, p_payload => $13, p_priority => 1::smallint, p_max_attempts => $14,
    p_fairness_key => $1::uuid::text), cardinality($9::text[]), f.labels, $2
from retry f
