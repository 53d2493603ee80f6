-- What stands after every endpoint of $2 has failed four times to take each of so many events: the events, a delivery for
-- each endpoint, its newest attempt, and the job of the next one, four to six hours ahead. The older attempts are left
-- out: nothing that delivers reads them.
with told as (
  select pg_temp.bench_id(at) as event_id, at
  from (select now() - interval '40 minutes' - random() * interval '20 minutes' as at from generate_series(1, $3)) as times
), event as (
  insert into webhook_events (tenant_id, event_id, type, body, created_at)
  select $1, event_id, 'approval.requested', $4, at from told
), retry as materialized (
  select pg_temp.bench_id(at) as delivery_id, endpoint_id, event_id, at,
    nextval(pg_get_serial_sequence('job_jobs', 'id')) as job_id,
    now() + interval '4 hours' + random() * interval '2 hours' as next_at
  from told cross join unnest($2::uuid[]) as endpoint_id
), delivery as (
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, state, attempts, next_attempt_at,
    last_error, last_status, job_id, created_at)
  select $1, delivery_id, endpoint_id, event_id, 'approval.requested', 'being-sent', 4, next_at, 'http-status', 503, job_id, at
  from retry
), attempt as (
  insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ended_at, duration_ms,
    reason, status, address, answer)
  select $1, delivery_id, 4, endpoint_id, now() - interval '1 minute',
    now() - interval '59 seconds', 1000, 'http-status', 503, '127.0.0.1', ''
  from retry
), counted as (
  update webhook_endpoint_counts
  set is_failing = true, last_failed_at = now(), last_error = 'http-status', last_status = 503
  where tenant_id = $1 and endpoint_id = any ($2)
), moved as (
  insert into job_key_moves (queue, key, cap)
  select distinct 'webhooks', endpoint_id::text, 1 from retry
)
insert into job_jobs (id, queue, name, payload, priority, run_at, max_attempts, key, key_cap)
select job_id, 'webhooks', 'webhook.deliver',
  json_build_object('tenantId', $1, 'endpointId', endpoint_id, 'deliveryId', delivery_id), 1, next_at, 1000000,
  endpoint_id::text, 1
from retry
