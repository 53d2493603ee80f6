-- What a person does keeps the session open. That is written with the look-up, once a minute at most. A tenant may end
-- sessions sooner than the server does.
with found as (
  select s.*, least(s.expires_at, s.created_at + make_interval(hours => g.session_hours)) as ends_at,
    greatest($4::timestamptz, $2::timestamptz - make_interval(mins => g.session_idle_minutes + 1)) as active_after,
    g.session_idle_minutes
  from sessions s
  left join sign_in_settings g on g.tenant_id = s.tenant_id
  where s.digest = $1 and s.ended_at is null
), kept_open as (
  update sessions s
  set active_at = $2
  from found f
  where s.tenant_id = f.tenant_id and s.session_id = f.session_id and $3::boolean and s.ended_at is null
    and f.ends_at > $2 and s.active_at > f.active_after and s.active_at <= $2 - interval '1 minute'
  returning s.active_at
)
select f.tenant_id, f.user_id, f.session_id, f.ends_at as expires_at, f.role, f.capabilities, f.project_id, f.token_id,
  f.keys_expire_at, f.session_idle_minutes, coalesce((select active_at from kept_open), f.active_at) as active_at
from found f
join users u on u.tenant_id = f.tenant_id and u.user_id = f.user_id
left join tokens t on t.tenant_id = f.tenant_id and t.token_id = f.token_id
where u.deactivated_at is null
  and (f.token_id is null or (t.token_id is not null and t.revoked_at is null))
