-- The end of an attempt, what it makes of its delivery, and the endpoint's figures. No row: the delivery has ended, or
-- the attempt is not its next one.
with held as (
  select delivery_id, endpoint_id from webhook_deliveries
  where tenant_id = $1 and delivery_id = $2 and state = 'being-sent' and attempts = $3 - 1 for update
), ended as (
  update webhook_attempts a
  set ended_at = clock_timestamp(), duration_ms = $4, reason = $5, status = $6, message = $7, address = $8, answer = $9
  from held where a.tenant_id = $1 and a.delivery_id = $2 and a.attempt = $3 and a.ended_at is null
), delivery as (
  update webhook_deliveries d
  set attempts = $3, state = $10, last_error = $5, last_status = $6, job_id = $11,
    next_attempt_at = case when $10 = 'being-sent' then clock_timestamp() + $12::bigint * interval '1 millisecond' end,
    ended_at = case when $10 <> 'being-sent' then clock_timestamp() end
  from held where d.tenant_id = $1 and d.delivery_id = $2
), counted as (
  insert into webhook_endpoint_counts as c (tenant_id, endpoint_id, delivered, failed, is_failing, is_slow,
    last_delivered_at, last_failed_at, last_error, last_status)
  select $1, held.endpoint_id, case $10 when 'delivered' then 1 else 0 end, case $10 when 'failed' then 1 else 0 end,
    $5 is not null, $13, case when $5 is null then clock_timestamp() end, case when $5 is not null then clock_timestamp() end,
    $5, case when $5 is not null then $6::smallint end
  from held
  on conflict (tenant_id, endpoint_id) do update set
    delivered = c.delivered + excluded.delivered,
    failed = c.failed + excluded.failed,
    is_failing = excluded.is_failing,
    is_slow = excluded.is_slow,
    last_delivered_at = coalesce(excluded.last_delivered_at, c.last_delivered_at),
    last_failed_at = coalesce(excluded.last_failed_at, c.last_failed_at),
    last_error = coalesce(excluded.last_error, c.last_error),
    last_status = case when excluded.last_error is null then c.last_status else excluded.last_status end
  returning c.endpoint_id
)
select from counted
