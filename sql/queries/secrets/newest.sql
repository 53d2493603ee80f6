select v.tenant_id, v.environment, v.name, v.version, v.format, v.nonce, v.ciphertext, v.wrapping_key,
  v.wrapped_data_key, v.created_by, v.created_at
from secret_versions v
order by v.created_at desc
limit 1
