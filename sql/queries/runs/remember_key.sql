insert into idempotency_keys (tenant_id, principal, route, key, body_digest, object_id, created_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant_id, principal, route, key) do nothing
