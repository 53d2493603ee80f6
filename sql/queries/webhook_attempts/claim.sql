select job_id, lease_id, tries, max_tries, name, key, payload, key_cap, event_id, attempt, body, url, secret_environment,
  secret_name, previous_environment, previous_name, stands, versions, formats, nonces, ciphertexts, wrapping_keys,
  wrapped_data_keys, created_by, created_at
from webhook_claim_deliveries($1, $2, $3, $4, $5, $6, $7, $8)
