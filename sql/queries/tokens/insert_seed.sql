insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, seed, created_at)
values ($1, $2, $3, $4, $5, $6, true, $7)
