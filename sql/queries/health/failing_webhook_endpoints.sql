-- Registered endpoints whose newest attempt failed: those without a success for the longest time first.
select e.tenant_id, e.endpoint_id, e.url, c.last_delivered_at, c.last_error, c.last_status
from webhook_endpoint_counts c
join webhook_endpoints e on e.tenant_id = c.tenant_id and e.endpoint_id = c.endpoint_id
where c.is_failing and e.unregistered_at is null
order by coalesce(c.last_delivered_at, e.created_at), e.endpoint_id
limit $1
