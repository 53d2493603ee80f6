-- New deliveries of the events of old ones. The jobs stand already, in the same transaction.
with again as (
  select * from unnest($2::uuid[], $3::uuid[], $4::bigint[]) a (resends, delivery_id, job_id)
), old as (
  update webhook_deliveries d set resent_as = a.delivery_id
  from again a where d.tenant_id = $1 and d.delivery_id = a.resends
  returning d.endpoint_id, d.event_id, d.type, d.run_id, a.resends, a.delivery_id, a.job_id
)
insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, resends, state, next_attempt_at, job_id, created_at)
select $1, delivery_id, endpoint_id, event_id, type, run_id, resends, 'being-sent', now(), job_id, $5 from old
