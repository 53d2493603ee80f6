-- Whether the newest attempt at each endpoint failed, as of now.
select e.endpoint_id, e.url, coalesce(c.is_failing, false) as is_failing
from webhook_endpoints e left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
where e.tenant_id = any ($1) and e.endpoint_id = any ($2)
