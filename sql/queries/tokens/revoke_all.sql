update tokens
set revoked_at = $3
where tenant_id = $1 and user_id = $2 and revoked_at is null
