-- For how many milliseconds an attempt at the endpoint may still be in flight; 0: none is. Those that a process of the
-- version before began say so themselves.
select greatest(job_key_standing('webhooks', $2::uuid::text), (
  select coalesce(extract(epoch from max(a.ends_by) - clock_timestamp()) * 1000, 0)::bigint
  from webhook_deliveries d
    join webhook_attempts a on a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.attempt = d.attempts + 1
  where d.tenant_id = $1 and d.endpoint_id = $2 and d.state = 'being-sent'
    and a.ended_at is null and a.ends_by > clock_timestamp()
))
