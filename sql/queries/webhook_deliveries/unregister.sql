update webhook_endpoints set unregistered_at = $3
where tenant_id = $1 and endpoint_id = $2 and unregistered_at is null
