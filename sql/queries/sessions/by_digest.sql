-- What a person does keeps the session open. That is written with the look-up, once a minute at most.
with found as (
  select * from open_sessions(moment => $3, idle => $4, life => $5, by_token => $6, by_console => $7) where digest = $1
), kept_open as (
  update sessions s
  set active_at = $3
  from found
  where s.tenant_id = found.tenant_id and s.session_id = found.session_id
    and $2::boolean and s.active_at <= $3 - interval '1 minute'
  returning s.active_at
), used as (
  select coalesce((select active_at from kept_open), (select active_at from found)) as active_at
)
select found.tenant_id, found.user_id, found.session_id, found.expires_at, found.role, found.capabilities, found.project_id,
  found.token_id, found.keys_expire_at, used.active_at,
  used.active_at + make_interval(secs => found.idle_seconds) + interval '1 minute' as idle_at
from found, used
