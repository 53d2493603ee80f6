insert into tokens (
  tenant_id, token_id, user_id, name, digest, last_four, created_at, expires_at, role, capabilities, project_id
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning token_id, name, last_four, seed, created_at, expires_at, role, capabilities, project_id, last_used_at
