-- What a person does keeps the session open. That is written with the look-up, once a minute at most.
with kept_open as (
  update sessions
  set active_at = $2::timestamptz
  where digest = $1 and $3::boolean and ended_at is null and expires_at > $2
    and active_at > $4::timestamptz and active_at <= $2 - interval '1 minute'
  returning active_at
)
select s.tenant_id, s.user_id, s.session_id, s.expires_at, s.role, s.capabilities, s.project_id, s.token_id,
  s.keys_expire_at, coalesce((select active_at from kept_open), s.active_at) as active_at
from sessions s
join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
where s.digest = $1 and s.ended_at is null and u.deactivated_at is null
  and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
