select tenant_id, user_id, token_id, expires_at
from tokens
where digest = $1 and revoked_at is null
