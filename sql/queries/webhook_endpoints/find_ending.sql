-- An endpoint that is registered, or to which an attempt may still be in flight after it was unregistered.
select e.endpoint_id from webhook_endpoints e
where e.tenant_id = $1 and e.endpoint_id = $2
  and (e.unregistered_at is null or job_key_standing(p_queue => 'webhooks', p_key => e.endpoint_id::text) > 0)
