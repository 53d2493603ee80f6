-- A session counts as one of the tokens that it stands in for.
select wanted.tenant_id, wanted.token_id
from unnest($1::uuid[], $2::uuid[]) wanted (tenant_id, token_id)
where not exists (
  select from tokens t
  join users u on u.tenant_id = t.tenant_id and u.user_id = t.user_id
  where t.tenant_id = wanted.tenant_id
    and t.token_id = wanted.token_id
    and t.revoked_at is null
    and u.deactivated_at is null
)
and not exists (
  select from sessions s
  join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
  left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
  left join sign_in_settings g on g.tenant_id = s.tenant_id
  where s.tenant_id = wanted.tenant_id
    and s.session_id = wanted.token_id
    and s.ended_at is null
    and least(s.expires_at, s.created_at + make_interval(hours => g.session_hours)) > $4
    and s.active_at > greatest($3, $4 - make_interval(mins => g.session_idle_minutes + 1))
    and u.deactivated_at is null
    and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
)
