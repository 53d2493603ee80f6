-- What is open goes before what is not, and other sessions before those of the new one's token: a key ends no other
-- sessions by signing in often. The new one stays.
update sessions
set ended_at = $3
where tenant_id = $1
  and session_id in (
    select s.session_id
    from sessions s
    left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
    left join sign_in_settings g on g.tenant_id = s.tenant_id
    where s.tenant_id = $1 and s.user_id = $2 and s.ended_at is null and s.session_id <> $6
    order by
      least(s.expires_at, s.created_at + make_interval(hours => g.session_hours)) > $3
        and s.active_at > greatest($4, $3 - make_interval(mins => g.session_idle_minutes + 1))
        and (s.token_id is null or (t.token_id is not null and t.revoked_at is null)) desc,
      (s.token_id = $7) is true,
      s.session_id desc
    offset $5::bigint - 1
  )
returning session_id
