insert into secret_versions (tenant_id, environment, name, version, format, nonce, ciphertext, wrapping_key,
  wrapped_data_key, created_by, created_at, wrapped_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
