insert into identity_providers (tenant_id, identity_provider_id, managed_by, name, issuer, client_id, secret_environment,
  secret_name, scopes, email_trust, creates_people, groups_claim, created_by, created_at, updated_at)
values ($1, $2, 'tenant', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)
