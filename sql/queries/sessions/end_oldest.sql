update sessions
set ended_at = $3
where tenant_id = $1
  and session_id in (
    select session_id
    from sessions
    where tenant_id = $1 and user_id = $2 and ended_at is null
    order by expires_at > $3 and active_at > $4 desc, session_id desc
    offset $5
  )
returning session_id
