-- How an endpoint is sent to; the share of its row is held until the attempt's own row is committed, so that an
-- unregistering sees either the one or the other. No row: it is not registered (any more).
select url, secret_environment, secret_name,
  case when previous_until > $3 then previous_environment end, case when previous_until > $3 then previous_name end
from webhook_endpoints
where tenant_id = $1 and endpoint_id = $2 and unregistered_at is null
for share
