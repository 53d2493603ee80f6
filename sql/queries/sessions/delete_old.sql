delete from sessions
where (tenant_id, session_id) in (
  select tenant_id, session_id
  from sessions
  where least(ended_at, expires_at) < $1
  order by least(ended_at, expires_at)
  limit $2
  for update skip locked
)
