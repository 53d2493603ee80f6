-- What is open goes before what is not, and other sessions before those of the new one's token: a key ends no other
-- sessions by signing in often. The new one stays.
update sessions
set ended_at = $6
where tenant_id = $1
  and session_id in (
    select s.session_id
    from sessions s
    left join open_sessions(moment => $6, idle => $7, life => $8, by_token => $9, by_console => $10) o
      on o.tenant_id = s.tenant_id and o.session_id = s.session_id
    where s.tenant_id = $1 and s.user_id = $2 and s.ended_at is null and s.session_id <> $3
    order by o.session_id is not null desc, (s.token_id = $4) is true, s.session_id desc
    offset $5::bigint - 1
  )
returning session_id
