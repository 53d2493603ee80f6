update sessions
set ended_at = $4
where tenant_id = $1 and user_id = $2 and token_id = $3 and ended_at is null
