insert into sessions (
  tenant_id, session_id, user_id, digest, method, token_id, role, capabilities, project_id, keys_expire_at,
  client_address, user_agent, created_at, active_at, expires_at, identity_provider_id,
  idle_seconds
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16)
