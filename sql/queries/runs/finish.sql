-- The end of a run that is held, with all that follows from it. No row: the lease is lost, or a cancel was asked
-- for and the end is another.
with held as (
  update runs set status = $5, failure_message = $6, completed_at = $4, last_seq = last_seq + 1, job_id = null
  where tenant_id = $1 and run_id = $2 and lease_epoch = $3 and status = 'running'
    and (cancel_requested_at is null or $5 = 'cancelled')
  returning conversation_id, last_seq
), told as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at) select $1, $2, last_seq, $7, $8, $4 from held
), kept as (
  update run_payloads p set output = $9 from held where p.tenant_id = $1 and p.run_id = $2 and $9::jsonb is not null
), dropped as (
  delete from run_deltas d using held where d.tenant_id = $1 and d.run_id = $2
), turn as (
  update conversations c set active_run_id = null, last_position = c.last_position + case when $10::text is null then 0 else 1 end
  from held where c.tenant_id = $1 and c.conversation_id = held.conversation_id and c.active_run_id = $2
  returning c.conversation_id, c.last_position
), said as (
  insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
  select $1, conversation_id, last_position, 'assistant', $10, $2, $4 from turn where $10::text is not null
)
select last_seq from held
