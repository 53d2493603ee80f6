select body_digest, object_id from idempotency_keys
where tenant_id = $1 and principal = $2 and route = $3 and key = $4
