select count(*) from webhook_endpoints where unregistered_at is null
