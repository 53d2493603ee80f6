-- The row of an attempt that is about to begin: until it has ended, there is no time for a next one.
with delivery as (
  update webhook_deliveries set next_attempt_at = null where tenant_id = $1 and delivery_id = $2
)
insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
values ($1, $2, $3, $4, now(), now() + $5::bigint * interval '1 millisecond')
