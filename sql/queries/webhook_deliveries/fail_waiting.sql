-- Fails deliveries of an endpoint that was unregistered: all but those whose job is under a lease, or $3 alone, whose job is
-- the caller's. An attempt whose outcome a crash hid gets its row: its job was claimed before. Answers the jobs.
--
-- Whoever ends an attempt locks the job and then the delivery, whoever begins one does so the other way round. So nothing is
-- waited for here: a delivery is left out where it or its job is another's. That one, or the job's next claim, sees to it.
with locked as materialized (
  select d.delivery_id, d.endpoint_id, d.attempts, d.job_id, coalesce(d.next_attempt_at, d.created_at) as due_at,
    coalesce(j.attempt, 0) > case when $3::uuid is null then 0 else 1 end as is_lost
  from webhook_deliveries d cross join lateral job_standing(p_id => d.job_id) j
  where d.tenant_id = $1 and d.endpoint_id = $2 and ($3 is null or d.delivery_id = $3) and d.state = 'being-sent'
    and not exists (select from webhook_endpoints e
      where e.tenant_id = $1 and e.endpoint_id = $2 and e.unregistered_at is null)
    and ($3 is not null or coalesce(j.left_ms, 0) = 0)
  order by d.delivery_id
  limit $4
  for update of d skip locked
), waiting as materialized (
  select * from locked l where $3 is not null or l.job_id is null or job_hold(p_id => l.job_id)
), lost as (
  insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ended_at, reason)
  select $1, w.delivery_id, w.attempts + 1, w.endpoint_id, least(w.due_at, clock_timestamp()), clock_timestamp(), $6
  from waiting w where w.is_lost
), failed as (
  update webhook_deliveries d
  set state = 'failed', last_error = $5, last_status = null, next_attempt_at = null, ended_at = clock_timestamp(),
    job_id = null, attempts = w.attempts + case when w.is_lost then 1 else 0 end
  from waiting w where d.tenant_id = $1 and d.delivery_id = w.delivery_id
), counted as (
  update webhook_endpoint_counts c set failed = c.failed + w.count
  from (select count(*) from waiting) w where c.tenant_id = $1 and c.endpoint_id = $2
)
select job_id from waiting
