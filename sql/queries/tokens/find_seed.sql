select seed, user_id, revoked_at is not null as is_revoked
from tokens
where tenant_id = $1 and digest = $2
