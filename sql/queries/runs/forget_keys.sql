delete from idempotency_keys where (tenant_id, principal, route, key) in (
  select tenant_id, principal, route, key from idempotency_keys
  where created_at < $1 order by created_at limit $2 for update skip locked)
