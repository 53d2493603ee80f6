-- The sessions that are open: neither ended, nor over by what was allowed when they were opened, nor by what the settings of
-- the server, or of their tenant, allow now. What ends one is here alone. `idle_seconds` and `expires_at` are those that count.
-- A use may be a minute later than it was noted.
-- The planner takes the statement into the one that calls it, so that an index serves what that one looks for.
create function open_sessions(moment timestamptz, idle integer, life integer, by_token text, by_console text)
returns table (
  tenant_id uuid, session_id uuid, user_id uuid, digest bytea, method text, token_id uuid, role text, capabilities text[],
  project_id uuid, keys_expire_at timestamptz, client_address inet, user_agent text, created_at timestamptz,
  active_at timestamptz, idle_seconds integer, expires_at timestamptz
)
language sql stable as $$
  select s.tenant_id, s.session_id, s.user_id, s.digest, s.method, s.token_id, s.role, s.capabilities, s.project_id,
    s.keys_expire_at, s.client_address, s.user_agent, s.created_at, s.active_at,
    least(s.idle_seconds, idle, 60 * g.session_idle_minutes),
    least(s.expires_at, s.created_at + make_interval(secs => least(life, 3600 * g.session_hours)))
  from sessions s
  join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
  left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
  left join sign_in_settings g on g.tenant_id = s.tenant_id
  where s.ended_at is null and u.deactivated_at is null
    and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
    and least(s.expires_at, s.created_at + make_interval(secs => least(life, 3600 * g.session_hours))) > moment
    and s.active_at + make_interval(secs => least(s.idle_seconds, idle, 60 * g.session_idle_minutes)) + interval '1 minute'
      > moment
    and case s.method when 'token' then by_token when 'development' then by_console else 'on' end
      in ('on', case u.tenant_role when 'admin' then 'admins' end)
    and (
      s.method <> 'token' or g.token_sign_in is null
      or g.token_sign_in in ('on', case u.tenant_role when 'admin' then 'admins' end)
    )
$$;
