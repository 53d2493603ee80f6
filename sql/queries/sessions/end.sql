update sessions
set ended_at = coalesce(ended_at, $4)
where tenant_id = $1 and user_id = $2 and session_id = $3
  and ($5::uuid is null or project_id = $5)
