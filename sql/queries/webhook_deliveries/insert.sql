-- An event with its deliveries. The jobs stand already, in the same transaction.
with event as (
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at) values ($1, $2, $3, $4, $5, $6)
)
insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at, job_id, created_at)
select $1, d.delivery_id, d.endpoint_id, $2, $3, $5, 'being-sent', now(), d.job_id, $6
from unnest($7::uuid[], $8::uuid[], $9::bigint[]) d (delivery_id, endpoint_id, job_id)
