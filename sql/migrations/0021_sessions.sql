-- Sessions: browsers in which a person signed in.

create table sessions (
  tenant_id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  -- The value in the cookie is never stored.
  digest bytea not null check (octet_length(digest) = 32),
  method text not null check (method in ('token', 'enrolment', 'development', 'provider')),
  -- The token that it came from, and ends with. It may be gone: a seed token that is replaced is deleted.
  token_id uuid,
  -- What it may do at most, as of a token.
  role text not null check (role in ('admin', 'member')),
  capabilities text[] not null
    check (capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  project_id uuid,
  -- When the keys end that are minted with it, if they have to.
  keys_expire_at timestamptz,
  client_address inet not null,
  user_agent text check (char_length(user_agent) <= 300),
  created_at timestamptz not null,
  -- Written once a minute at most, in a row with room for it.
  active_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  primary key (tenant_id, session_id),
  foreign key (tenant_id, user_id) references users,
  foreign key (tenant_id, project_id) references projects
) with (fillfactor = 70);
-- Without a tenant: a credential is looked up before its tenant is known.
create unique index sessions_digest on sessions (digest);
create index sessions_user on sessions (tenant_id, user_id, session_id) where ended_at is null;
create index sessions_expired on sessions (expires_at);
