select places, event_ids, attempts, bodies, url, secret_environment, secret_name, previous_environment, previous_name, stands,
  versions, formats, nonces, ciphertexts, wrapping_keys, wrapped_data_keys, created_by, created_at
from webhook_begin_attempts($1, $2, $3, $4, $5, $6, $7, $8)
