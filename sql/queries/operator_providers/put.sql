insert into identity_providers (tenant_id, identity_provider_id, managed_by, name, issuer, client_id, scopes, email_trust,
  creates_people, groups_claim, created_at, updated_at)
values ($1, $2, 'operator', $3, $4, $5, $6, $7, $8, $9, $10, $10)
on conflict (tenant_id, identity_provider_id) do update
set name = excluded.name, scopes = excluded.scopes, email_trust = excluded.email_trust,
  creates_people = excluded.creates_people, groups_claim = excluded.groups_claim, updated_at = excluded.updated_at,
  retired_at = null
