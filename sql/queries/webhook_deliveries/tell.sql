select matched, endpoint_id, job_id, lease_id, payload, url, secret_environment, secret_name, previous_environment,
  previous_name, stands, versions, formats, nonces, ciphertexts, wrapping_keys, wrapped_data_keys, created_by, created_at
from webhook_tell($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
