-- What migrating records about itself. Run before every step, so it may only ever add.

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

-- The functions that stand, with the text that made them.
create table if not exists agent_runtime_functions (
  name text primary key,
  definition text not null
);

-- Every set of functions that stood here. A program that finds its own set here, or a set of a later version, leaves the
-- functions alone: a newer program has replaced them.
create table if not exists agent_runtime_function_sets (
  -- The SHA-256 of all names and texts.
  digest bytea primary key,
  -- The version of the program that applied it.
  version text not null,
  applied_at timestamptz not null default now()
);
