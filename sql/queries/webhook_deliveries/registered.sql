-- No row: the endpoint is not registered.
select coalesce(c.last_delivered_at is not null and not (c.is_failing or c.is_slow), false) as is_well
from webhook_endpoints e left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
where e.tenant_id = $1 and e.endpoint_id = $2 and e.unregistered_at is null
