update sessions
set ended_at = $3
where tenant_id = $1 and user_id = $2 and ended_at is null
