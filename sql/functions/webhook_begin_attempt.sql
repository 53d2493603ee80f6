-- Begins an attempt whose job was claimed alone, under a lease that it does not outlast. No row: the endpoint is not
-- registered, the delivery has ended or waits under another job, or the lease was lost.
create function webhook_begin_attempt(
  of_tenant_id uuid, of_endpoint_id uuid, of_delivery_id uuid, of_job_id bigint, of_lease_id bigint, within_ms bigint,
  at timestamptz
) returns table (event_id uuid, attempt integer, body text, url text, secret_environment text, secret_name text,
  previous_environment text, previous_name text)
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  receiver webhook_endpoints;
begin
  select e.* into receiver from webhook_endpoints e
  where e.tenant_id = of_tenant_id and e.endpoint_id = of_endpoint_id and e.unregistered_at is null
  for share;
  if not found or not job_keep_lease(of_job_id, of_lease_id, within_ms) then
    return;
  end if;
  return query
  select d.event_id, d.attempts + 1, v.body, receiver.url, receiver.secret_environment, receiver.secret_name,
    case when receiver.previous_until > at then receiver.previous_environment end,
    case when receiver.previous_until > at then receiver.previous_name end
  from webhook_deliveries d
    cross join lateral (
      select v.body from webhook_events v where v.tenant_id = d.tenant_id and v.event_id = d.event_id offset 0
    ) v
  where d.tenant_id = of_tenant_id and d.delivery_id = of_delivery_id and d.ended_at is null and d.job_id = of_job_id;
end $$;
