-- Endpoints that were unregistered and still have deliveries that wait: what an unregistering left behind that did not
-- come to its end.
select distinct d.tenant_id, d.endpoint_id
from webhook_deliveries d join webhook_endpoints e on e.tenant_id = d.tenant_id and e.endpoint_id = d.endpoint_id
where d.state = 'being-sent' and e.unregistered_at is not null
limit $1
