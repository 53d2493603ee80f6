insert into authz_stores
  (tenant_id, store_id, model_id, model_version, model_digest, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $6)
on conflict (tenant_id) do update set
  store_id = excluded.store_id, model_id = excluded.model_id,
  model_version = excluded.model_version, model_digest = excluded.model_digest,
  updated_at = excluded.updated_at
