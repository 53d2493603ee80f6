select count(*) from (
  select 1 from webhook_deliveries
  where tenant_id = $1 and endpoint_id = $2 and state = 'being-sent'
  limit $3) as waiting
