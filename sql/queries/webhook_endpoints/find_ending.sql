-- An endpoint that is registered, or to which an attempt may still be in flight after it was unregistered.
select e.endpoint_id from webhook_endpoints e
where e.tenant_id = $1 and e.endpoint_id = $2
  and (e.unregistered_at is null or job_key_standing('webhooks', e.endpoint_id::text) > 0 or exists (
    -- As a process of the version before began it.
    select from webhook_deliveries d
      join webhook_attempts a on a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.attempt = d.attempts + 1
    where d.tenant_id = $1 and d.endpoint_id = $2 and d.state = 'being-sent'
      and a.ended_at is null and a.ends_by > clock_timestamp()))
