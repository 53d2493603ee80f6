select places, event_ids, attempts, bodies, url, secret_environment, secret_name, previous_environment, previous_name, stands,
  versions, formats, nonces, ciphertexts, wrapping_keys, wrapped_data_keys, created_by, created_at
from webhook_begin_attempts(of_lease_id => $1, of_tenant_ids => $2, of_endpoint_ids => $3, firsts => $4, lasts => $5,
  of_delivery_ids => $6, of_job_ids => $7, at => $8)
