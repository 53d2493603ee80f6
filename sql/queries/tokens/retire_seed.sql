with replaced as (
  delete from tokens where tenant_id = $1 and seed and revoked_at is null and digest <> $2
)
update tokens set seed = false where tenant_id = $1 and seed and revoked_at is not null
