-- An endpoint that is registered, or to which an attempt may still be in flight after it was unregistered.
select e.endpoint_id from webhook_endpoints e
where e.tenant_id = $1 and e.endpoint_id = $2
  and (e.unregistered_at is null or exists (
    select from webhook_attempts a
    where a.tenant_id = $1 and a.endpoint_id = $2 and a.ended_at is null and a.ends_by > clock_timestamp()))
