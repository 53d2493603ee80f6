-- Failed deliveries that nothing sends again yet, oldest first, locked. Of two that ask at once, the second finds none
-- of what the first took.
select d.delivery_id
from webhook_deliveries d
where d.tenant_id = $1 and d.endpoint_id = $2 and d.state = 'failed' and d.ended_at >= $3 and d.resent_as is null
  and exists (select from webhook_events v where v.tenant_id = d.tenant_id and v.event_id = d.event_id)
order by d.delivery_id
limit $4
for update of d
