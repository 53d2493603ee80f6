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
  select from open_sessions(moment => $3, idle => $4, life => $5, by_token => $6, by_console => $7) s
  where s.tenant_id = wanted.tenant_id and s.session_id = wanted.token_id
)
