select exists (
  select from identities
  where tenant_id = $1 and identity_provider_id = $2 and user_id = $3
)
