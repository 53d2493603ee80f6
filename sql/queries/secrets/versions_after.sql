select v.tenant_id, v.environment, v.name, v.version, v.format, v.nonce, v.ciphertext, v.wrapping_key,
  v.wrapped_data_key, v.created_by, v.created_at
from secret_versions v
where (v.tenant_id, v.environment, v.name, v.version) > ($1, $2, $3, $4)
order by v.tenant_id, v.environment, v.name, v.version
limit $5
