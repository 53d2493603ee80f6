-- No row: the endpoint is not registered (any more). While the share of its row is held, it cannot be unregistered.
select 1 from webhook_endpoints
where tenant_id = $1 and endpoint_id = $2 and unregistered_at is null
for share
