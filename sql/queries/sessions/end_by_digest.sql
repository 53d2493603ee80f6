update sessions
set ended_at = $2
where digest = $1 and ended_at is null
returning session_id
