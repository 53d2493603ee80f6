-- What the migrations themselves keep: applied before every other step, so it may only ever add.

create table if not exists agent_runtime_migrations (
  name text primary key,
  -- The SHA-256 of the text that was applied.
  digest bytea not null,
  applied_at timestamptz not null default now()
);

create table if not exists agent_runtime_requirements (
  only_row boolean primary key default true check (only_row),
  -- The oldest version of the program that may run on this schema.
  oldest_binary text not null
);
