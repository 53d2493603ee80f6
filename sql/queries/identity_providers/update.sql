update identity_providers
set name = $3, client_id = $4, secret_environment = $5, secret_name = $6, scopes = $7, email_trust = $8,
  creates_people = $9, groups_claim = $10, updated_at = $11
where tenant_id = $1 and identity_provider_id = $2
