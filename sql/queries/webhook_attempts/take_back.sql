-- Removes the row of an attempt for which nothing was sent; the delivery waits as before. No row: it has ended.
with gone as (
  delete from webhook_attempts
  where tenant_id = $1 and delivery_id = $2 and attempt = $3 and ended_at is null
  returning delivery_id
)
update webhook_deliveries d set next_attempt_at = clock_timestamp() + $4::bigint * interval '1 millisecond'
from gone where d.tenant_id = $1 and d.delivery_id = gone.delivery_id and d.state = 'being-sent'
returning d.delivery_id
