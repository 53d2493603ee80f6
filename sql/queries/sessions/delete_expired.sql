delete from sessions
where (tenant_id, session_id) in (
  select tenant_id, session_id from sessions where expires_at < $1 order by expires_at limit $2
)
