update tokens
set revoked_at = coalesce(revoked_at, $4)
where tenant_id = $1 and user_id = $2 and token_id = $3
  and ($5::uuid is null or project_id = $5)
