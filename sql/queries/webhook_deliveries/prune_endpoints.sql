-- Unregistered endpoints whose last delivery was dropped.
delete from webhook_endpoints e
where e.unregistered_at < $1
  and not exists (select from webhook_deliveries d where d.tenant_id = e.tenant_id and d.endpoint_id = e.endpoint_id)
