-- Of somebody's ended sessions the newest stay. One stays, too, in which an enrolment code was made that is open: whether the
-- code holds is read from it.
delete from sessions
where tenant_id = $1
  -- An array, so that the sessions are chosen once, whatever the planner thinks of their number.
  and session_id = any (array(
    select s.session_id
    from sessions s
    where s.tenant_id = $1 and s.user_id = $2 and s.ended_at is not null
      and not exists (
        select from enrolments e
        where e.tenant_id = $1 and e.created_with = s.session_id and e.ended_at is null and e.expires_at > $3
      )
    order by s.ended_at desc, s.session_id desc
    offset $4 limit $5
    for update skip locked
  ))
