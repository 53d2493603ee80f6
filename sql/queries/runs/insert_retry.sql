-- Takes up a failed run: a run with its input, its labels, and its first steps, which are done; one of them may be asked
-- something else. In a conversation it answers the message that stands there already. No row where the project, the agent or
-- the flow is archived, where another run that takes it up has not ended or has completed, or where its conversation has gone
-- on.
with open as (
  select f.*
  from runs f
  where f.tenant_id = $1 and f.run_id = $2 and f.status = 'failed' and f.payload_erased_at is null
    and not exists (select from projects p where p.tenant_id = $1 and p.project_id = f.project_id and p.archived_at is not null)
    and not exists (select from agents a where a.tenant_id = $1 and a.agent_id = f.agent_id and a.archived_at is not null)
    and not exists (
      select from flows w
      where w.tenant_id = $1 and w.project_id = f.project_id and w.flow_id = f.flow_id and w.archived_at is not null)
), taken_up as (
  insert into run_retries (tenant_id, run_id, retried_by) select $1, $2, $3 from open
  on conflict (tenant_id, run_id) do update set retried_by = excluded.retried_by
    where (select r.status from runs r where r.tenant_id = $1 and r.run_id = run_retries.retried_by) in ('failed', 'cancelled')
  returning run_id
), turn as (
  update conversations c set active_run_id = $3
  from open f cross join taken_up
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
  select f.* from open f cross join taken_up where f.conversation_id is null or exists (select from turn)
), payload as (
  insert into run_payloads (tenant_id, run_id, input, options)
  select $1, $3, p.input, p.options from retry join run_payloads p on p.tenant_id = $1 and p.run_id = $2
), step as (
  insert into run_steps (tenant_id, run_id, step, kind, name, path, status, attempt, failures, request, result, started_at,
    completed_at, format)
  select $1, $3, s.step, s.kind, s.name, s.path, s.status, s.attempt, s.failures,
    case s.step when $14 then $15 else s.request end, s.result, s.started_at, s.completed_at, s.format
  from retry join run_steps s on s.tenant_id = $1 and s.run_id = $2
  where s.step <= $7
), event as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $3, e.n, e.kind, case e.kind
    when 'run.created' then run_created(of_tenant_id => $1, of_project_id => retry.project_id, of_agent_id => retry.agent_id,
      of_version => retry.agent_version, data => e.data)
    else e.data end, $6
  from retry, unnest($8::text[], $9::json[]) with ordinality e (kind, data, n)
), label as (
  insert into run_labels (tenant_id, project_id, key, value, run_id)
  select $1, retry.project_id, l.key, l.value, $3 from retry, json_each_text(retry.labels) l
)
insert into runs (tenant_id, run_id, project_id, flow_id, flow_version, status, origin, root_run_id, dry_run,
  agent_id, agent_version, conversation_id, via, created_by, created_at, job_id, last_seq, labels, retry_of, request_id)
select $1, $3, f.project_id, f.flow_id, f.flow_version, 'queued', $4, $3, f.dry_run,
  f.agent_id, f.agent_version, f.conversation_id, f.via, $5, $6, job_enqueue_one(p_queue => $10, p_name => $11, p_payload => $12, p_priority => 1::smallint, p_max_attempts => $13, p_fairness_key => $1::uuid::text), cardinality($8::text[]), f.labels, $2, $16
from retry f
