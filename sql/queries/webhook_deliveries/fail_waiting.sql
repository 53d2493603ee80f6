-- Fails deliveries of an endpoint that was unregistered, $3 alone or any, but none that is in flight. An attempt that a
-- crash left without an end gets one. Answers the jobs.
with waiting as (
  select d.delivery_id, d.attempts, d.job_id
  from webhook_deliveries d
  where d.tenant_id = $1 and d.endpoint_id = $2 and ($3::uuid is null or d.delivery_id = $3) and d.state = 'being-sent'
    and not exists (select from webhook_endpoints e
      where e.tenant_id = $1 and e.endpoint_id = $2 and e.unregistered_at is null)
    and not exists (select from webhook_attempts a where a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id
      and a.attempt = d.attempts + 1 and a.ended_at is null and a.ends_by > clock_timestamp())
  order by d.delivery_id
  limit $4
  for update of d
), lost as (
  update webhook_attempts a set ended_at = clock_timestamp(), reason = $6
  from waiting w
  where a.tenant_id = $1 and a.delivery_id = w.delivery_id and a.attempt = w.attempts + 1 and a.ended_at is null
  returning a.delivery_id
), failed as (
  update webhook_deliveries d
  set state = 'failed', last_error = $5, last_status = null, next_attempt_at = null, ended_at = clock_timestamp(),
    job_id = null, attempts = w.attempts + case when w.delivery_id in (select delivery_id from lost) then 1 else 0 end
  from waiting w where d.tenant_id = $1 and d.delivery_id = w.delivery_id
), counted as (
  update webhook_endpoint_counts c set failed = c.failed + w.count
  from (select count(*) from waiting) w where c.tenant_id = $1 and c.endpoint_id = $2
)
select job_id from waiting
