-- A run that nobody carries on ends at once; one that is carried on learns of it; a finished one is left alone (no row).
with old as (
  select status, cancel_requested_at, job_id from runs
  where tenant_id = $1 and run_id = $2 and status in ('queued', 'waiting', 'running') for update
), held as (
  update runs r set
    cancel_requested_at = coalesce(r.cancel_requested_at, $3),
    status = case when r.status = 'running' then 'running' else 'cancelled' end,
    completed_at = case when r.status = 'running' then null else $3 end,
    job_id = case when r.status = 'running' then r.job_id end,
    last_seq = r.last_seq + case when r.status = 'running' and r.cancel_requested_at is not null then 0 else 1 end
  from old where r.tenant_id = $1 and r.run_id = $2
  returning r.status, r.last_seq, r.conversation_id, old.job_id, old.cancel_requested_at is null as first
), told as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $2, last_seq, case when status = 'cancelled' then $4 else $5 end, '{}', $3 from held
  where status = 'cancelled' or first
), dropped as (
  delete from run_deltas d using held where d.tenant_id = $1 and d.run_id = $2 and held.status = 'cancelled'
), turn as (
  update conversations c set active_run_id = null from held
  where c.tenant_id = $1 and c.conversation_id = held.conversation_id and c.active_run_id = $2 and held.status = 'cancelled'
)
select status, job_id from held
