-- Some of the sessions, of one tenant or of all, for which the settings allow less than before: that counts from here on,
-- whatever they allow later.
-- What another statement holds at this moment is left to the next one, so that none waits for another in a circle.
with less as (
  select s.tenant_id, s.session_id, o.session_id is not null as is_open, o.idle_seconds, o.expires_at
  from sessions s
  left join open_sessions(moment => $3, idle => $4, life => $5, by_token => $6, by_console => $7) o
    on o.tenant_id = s.tenant_id and o.session_id = s.session_id
  where s.ended_at is null and s.tenant_id = coalesce($2::uuid, s.tenant_id)
    and (o.session_id is null or o.idle_seconds is distinct from s.idle_seconds or o.expires_at <> s.expires_at)
  limit $1
  for update of s skip locked
)
update sessions s
set ended_at = case when not less.is_open then $3::timestamptz end,
  idle_seconds = coalesce(less.idle_seconds, s.idle_seconds),
  expires_at = coalesce(less.expires_at, s.expires_at)
from less
where s.tenant_id = less.tenant_id and s.session_id = less.session_id
