-- A delivery that is to be sent again, locked: whether its event is still kept.
select v.event_id is not null as has_event
from webhook_deliveries d left join webhook_events v on v.tenant_id = d.tenant_id and v.event_id = d.event_id
where d.tenant_id = $1 and d.endpoint_id = $2 and d.delivery_id = $3
for update of d
