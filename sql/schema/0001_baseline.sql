-- The schema, by noun. Functions stand in sql/functions, the job queue's tables in jobs/sql.
--
-- - `tenant_id` leads every primary and foreign key: no row can point into another tenant, and the tables can be
--   distributed by tenant.
-- - What grows is partitioned by its UUIDv7 or its time into calendar months (UTC): an old month is dropped, never deleted
--   row by row. Partitions are made by sql/functions/attach_*.sql.
-- - What an author or a model wrote is `json`, not `jsonb`: fields keep their order, which a reader recognizes and a model
--   is shown. No column is `jsonb`: nothing is sought inside of one.
-- - The hot tables (`runs`, `run_*`, `webhook_deliveries`, `webhook_attempts`) have no CHECK constraints: PostgreSQL
--   compiles them anew for each statement that writes a row, a quarter of the cost of a step. The program's types hold the
--   words, the functions that write count the numbers.

-- Tenants, users and their tokens

create table tenants (
  tenant_id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null
);

-- People and service accounts.
create table users (
  tenant_id uuid not null references tenants,
  user_id uuid not null,
  kind text not null default 'person' check (kind in ('person', 'service-account')),
  display_name text not null check (length(display_name) between 1 and 200),
  email text check (length(email) between 3 and 320),
  -- The email as it is matched: lowercase.
  email_key text check ((email_key is null) = (email is null)),
  tenant_role text not null default 'admin' check (tenant_role in ('admin', 'member')),
  created_by uuid,
  created_at timestamptz not null,
  deactivated_at timestamptz,
  primary key (tenant_id, user_id),
  foreign key (tenant_id, created_by) references users,
  check (kind = 'person' or (tenant_role = 'member' and email is null))
);
create unique index users_email on users (tenant_id, email_key);
-- A tenant keeps one active admin at least: this finds another one.
create index users_admin on users (tenant_id, user_id) where tenant_role = 'admin' and deactivated_at is null;

-- What a token may do at most. Its owner's rights are checked as well.
create table tokens (
  tenant_id uuid not null,
  token_id uuid not null,
  user_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  -- The token itself is never stored. Four characters are kept so that a person can tell tokens apart.
  digest bytea not null check (octet_length(digest) = 32),
  last_four text not null,
  role text not null default 'admin' check (role in ('admin', 'member')),
  capabilities text[] not null
    default '{access:write,env:write,keys:write,secrets:write}'
    check (capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  -- The one project that the token is limited to, if it is.
  project_id uuid,
  -- Came with the tenant or with a start of the server, and may end with the next start.
  seed boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, token_id),
  foreign key (tenant_id, user_id) references users
);
-- Without a tenant: a credential is looked up before its tenant is known.
create unique index tokens_digest on tokens (digest);
create index tokens_user on tokens (tenant_id, user_id, token_id);
create index tokens_seed on tokens (tenant_id) where seed;

-- Organizations, projects and who may use them

create table orgs (
  tenant_id uuid not null references tenants,
  org_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, org_id),
  unique (tenant_id, name),
  foreign key (tenant_id, created_by) references users
);

create table org_admins (
  tenant_id uuid not null,
  org_id uuid not null,
  user_id uuid not null,
  joined_at timestamptz not null,
  primary key (tenant_id, org_id, user_id),
  foreign key (tenant_id, org_id) references orgs,
  foreign key (tenant_id, user_id) references users
);
create index org_admins_user on org_admins (tenant_id, user_id);

create table projects (
  tenant_id uuid not null references tenants,
  project_id uuid not null,
  org_id uuid,
  name text not null check (length(name) between 1 and 200),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, project_id),
  foreign key (tenant_id, created_by) references users,
  foreign key (tenant_id, org_id) references orgs
);
create index projects_org on projects (tenant_id, org_id, project_id) where org_id is not null;
alter table tokens add foreign key (tenant_id, project_id) references projects;

create table project_memberships (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  -- `member` is what older runtimes stored: it reads as `viewer`.
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer', 'member')),
  joined_at timestamptz not null,
  primary key (tenant_id, project_id, user_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, user_id) references users
);
-- In the order of a page of readable projects (`readable_projects`).
create index project_memberships_user_project on project_memberships (tenant_id, user_id, project_id);

-- A role on a project with no membership behind it, as the creators of projects have that older runtimes made.
create table project_direct_roles (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer')),
  primary key (tenant_id, project_id, user_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, user_id) references users
);
create index project_direct_roles_user_project on project_direct_roles (tenant_id, user_id, project_id);

-- A code that a person exchanges for a first token, once. A newer code ends the one before it. The token may do no more
-- than the token that made the code, and lives no longer.
create table enrolments (
  tenant_id uuid not null,
  enrolment_id uuid not null,
  user_id uuid not null,
  digest bytea not null check (octet_length(digest) = 32),
  created_by uuid not null,
  -- The token that made it. It may be gone: a seed token that is replaced is deleted.
  created_with uuid not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  key_role text not null check (key_role in ('admin', 'member')),
  key_capabilities text[] not null
    check (key_capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  key_project_id uuid,
  key_expires_at timestamptz check (key_expires_at >= expires_at),
  primary key (tenant_id, enrolment_id),
  foreign key (tenant_id, user_id) references users,
  foreign key (tenant_id, created_by) references users,
  foreign key (tenant_id, key_project_id) references projects
);
-- Without a tenant: a code is looked up before its tenant is known.
create unique index enrolments_digest on enrolments (digest);
create unique index enrolments_open on enrolments (tenant_id, user_id) where ended_at is null;

create table teams (
  tenant_id uuid not null references tenants,
  team_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  slug text not null check (slug ~ '^[a-z0-9-]{1,100}$'),
  description text check (length(description) <= 4000),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, team_id),
  unique (tenant_id, slug),
  foreign key (tenant_id, created_by) references users
);

create table team_memberships (
  tenant_id uuid not null,
  team_id uuid not null,
  user_id uuid not null,
  role text not null check (role in ('admin', 'member')),
  joined_at timestamptz not null,
  primary key (tenant_id, team_id, user_id),
  foreign key (tenant_id, team_id) references teams on delete cascade,
  foreign key (tenant_id, user_id) references users
);
create index team_memberships_user on team_memberships (tenant_id, user_id);

create table team_grants (
  tenant_id uuid not null,
  project_id uuid not null,
  team_id uuid not null,
  role text not null check (role in ('admin', 'editor', 'viewer')),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, project_id, team_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, team_id) references teams on delete cascade,
  foreign key (tenant_id, created_by) references users
);
create index team_grants_team on team_grants (tenant_id, team_id, project_id);

create table reviewers (
  tenant_id uuid not null,
  user_id uuid not null,
  role text not null check (role ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, user_id, role),
  foreign key (tenant_id, user_id) references users,
  foreign key (tenant_id, created_by) references users
);

-- Every way into a project except that of the tenant's admins: a row for each user and way. Deactivated users have none.
create view project_ways as
  select m.tenant_id, m.project_id, m.user_id, 'direct' as via,
    case m.role when 'member' then 'viewer' else m.role end as role, m.joined_at, null::uuid as team_id
  from project_memberships m
  join users u on u.tenant_id = m.tenant_id and u.user_id = m.user_id and u.deactivated_at is null
  union all
  select d.tenant_id, d.project_id, d.user_id, 'direct', d.role, null, null
  from project_direct_roles d
  join users u on u.tenant_id = d.tenant_id and u.user_id = d.user_id and u.deactivated_at is null
  where not exists (
    select from project_memberships m
    where m.tenant_id = d.tenant_id and m.project_id = d.project_id and m.user_id = d.user_id
  )
  union all
  select p.tenant_id, p.project_id, a.user_id, 'org-admin', 'admin', null, null
  from projects p
  join org_admins a on a.tenant_id = p.tenant_id and a.org_id = p.org_id
  join users u on u.tenant_id = a.tenant_id and u.user_id = a.user_id and u.deactivated_at is null
  union all
  select g.tenant_id, g.project_id, t.user_id, 'team', g.role, null, g.team_id
  from team_grants g
  join team_memberships t on t.tenant_id = g.tenant_id and t.team_id = g.team_id
  join users u on u.tenant_id = t.tenant_id and u.user_id = t.user_id and u.deactivated_at is null;

-- The authorization server

-- The tenant's store there, and the model that checks name. An older program never takes a newer version back.
create table authz_stores (
  tenant_id uuid primary key references tenants,
  store_id text not null,
  model_id text not null,
  model_version integer not null,
  model_digest bytea not null check (octet_length(model_digest) = 32),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- For each object, the version of its tuples that is wanted and the one that was written there: a change raises `desired`
-- in its own transaction, writing sets `applied`.
create table authz_objects (
  tenant_id uuid not null references tenants,
  object text not null check (length(object) <= 200),
  desired bigint not null default 1,
  applied bigint not null default 0,
  primary key (tenant_id, object)
) with (fillfactor = 70);
-- What is still to be written: nearly always next to nothing.
create index authz_objects_unapplied on authz_objects (tenant_id, object) where applied < desired;

-- Secrets: values encrypted under a data key for each version, which a key-management service wraps

create table secrets (
  tenant_id uuid not null references tenants,
  environment text not null check (environment ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
  name text not null check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$' and name !~* '^svc_'),
  -- The current version. A number is never used again while the secret exists.
  version integer not null check (version > 0),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, environment, name),
  foreign key (tenant_id, created_by) references users
);

-- The current version and the one before it. A row decrypts only as this tenant's, under this environment and name, as this
-- version.
create table secret_versions (
  tenant_id uuid not null,
  environment text not null,
  name text not null,
  version integer not null check (version > 0),
  -- 1: AES-256-GCM, 96-bit nonce, tag at the end.
  format smallint not null check (format = 1),
  nonce bytea not null check (octet_length(nonce) = 12),
  ciphertext bytea not null check (octet_length(ciphertext) between 17 and 65552),
  -- The key that wrapped the data key, as its service names it.
  wrapping_key text not null check (length(wrapping_key) between 1 and 1000),
  wrapped_data_key bytea not null check (octet_length(wrapped_data_key) between 32 and 4096),
  created_by uuid not null,
  created_at timestamptz not null,
  wrapped_at timestamptz not null,
  primary key (tenant_id, environment, name, version),
  foreign key (tenant_id, environment, name) references secrets on delete cascade,
  foreign key (tenant_id, created_by) references users
);

-- Model providers

create table model_providers (
  tenant_id uuid not null references tenants,
  model_provider_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  base_url text not null check (length(base_url) <= 2048),
  -- The API key: one that the operator listed, by its name, or a secret of the tenant. Neither: no key.
  api_key_name text,
  api_key_environment text,
  api_key_secret text,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, model_provider_id),
  unique (tenant_id, name),
  foreign key (tenant_id, created_by) references users,
  check ((api_key_environment is null) = (api_key_secret is null)),
  check (api_key_name is null or api_key_secret is null)
);

-- US dollars per million tokens. A missing price of a part falls back to the price of its whole: cache tokens are part of
-- the prompt, reasoning tokens part of the completion.
create table models (
  tenant_id uuid not null,
  model_provider_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  prompt_price numeric(20, 10) check (prompt_price >= 0),
  completion_price numeric(20, 10) check (completion_price >= 0),
  cache_read_price numeric(20, 10) check (cache_read_price >= 0),
  cache_write_price numeric(20, 10) check (cache_write_price >= 0),
  reasoning_price numeric(20, 10) check (reasoning_price >= 0),
  primary key (tenant_id, model_provider_id, name),
  foreign key (tenant_id, model_provider_id) references model_providers
);

-- Tools

create table tools (
  tenant_id uuid not null,
  tool_id uuid not null,
  project_id uuid not null,
  name text not null check (name ~ '^[a-zA-Z0-9_-]{1,64}$'),
  description text not null check (length(description) <= 4000),
  -- JSON Schema of the arguments object.
  arguments_schema json not null,
  url text not null check (length(url) <= 2048),
  timeout_ms integer not null check (timeout_ms between 1 and 600000),
  -- An idempotent tool is called again after a crash; any other fails its run instead.
  idempotent boolean not null,
  created_by uuid not null,
  created_at timestamptz not null,
  -- Where its calls go.
  target text not null default 'http' check (target in ('http')),
  primary key (tenant_id, tool_id),
  unique (tenant_id, project_id, name),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users
);
create index tools_project on tools (tenant_id, project_id, tool_id);

-- Agents and their versions

create table agents (
  tenant_id uuid not null,
  agent_id uuid not null,
  project_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  description text not null check (length(description) <= 4000),
  -- The highest semantic version, and the one promoted for the project's scope.
  latest_version text,
  live_version text,
  -- The position of the newest version: allocated under this row's lock.
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, agent_id),
  unique (tenant_id, project_id, name),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users
);
create index agents_project on agents (tenant_id, project_id, agent_id);

create table agent_versions (
  tenant_id uuid not null,
  agent_id uuid not null,
  version text not null check (length(version) between 5 and 100),
  -- In the order in which the versions were made.
  position bigint not null check (position > 0),
  instructions text not null check (length(instructions) <= 200000),
  model_provider_id uuid not null,
  model text not null,
  parameters json not null,
  limits json not null,
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, agent_id, version),
  unique (tenant_id, agent_id, position),
  foreign key (tenant_id, agent_id) references agents,
  foreign key (tenant_id, model_provider_id, model) references models,
  foreign key (tenant_id, created_by) references users
);
-- A model that a version names is not deleted.
create index agent_versions_model on agent_versions (tenant_id, model_provider_id, model);
alter table agents
  add foreign key (tenant_id, agent_id, latest_version) references agent_versions,
  add foreign key (tenant_id, agent_id, live_version) references agent_versions;

create table agent_version_tools (
  tenant_id uuid not null,
  agent_id uuid not null,
  version text not null,
  position integer not null,
  tool_id uuid not null,
  primary key (tenant_id, agent_id, version, position),
  unique (tenant_id, agent_id, version, tool_id),
  foreign key (tenant_id, agent_id, version) references agent_versions,
  foreign key (tenant_id, tool_id) references tools
);
create index agent_version_tools_tool on agent_version_tools (tenant_id, tool_id);

-- Conversations

create table conversations (
  tenant_id uuid not null,
  conversation_id uuid not null,
  project_id uuid not null,
  agent_id uuid not null,
  -- The conversation's own version, if it was begun with one.
  version text,
  title text not null check (length(title) <= 200),
  -- The turn that is under way: a conversation has one at a time.
  active_run_id uuid,
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, conversation_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, agent_id) references agents,
  foreign key (tenant_id, agent_id, version) references agent_versions,
  foreign key (tenant_id, created_by) references users
);
create index conversations_agent on conversations (tenant_id, agent_id, conversation_id);
create index conversations_project on conversations (tenant_id, project_id, conversation_id);

create table conversation_messages (
  tenant_id uuid not null,
  conversation_id uuid not null,
  position bigint not null check (position > 0),
  role text not null check (role in ('user', 'assistant')),
  content text not null,
  run_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, conversation_id, position),
  foreign key (tenant_id, conversation_id) references conversations
);

-- Runs: the narrow row that is fenced, and beside it what grows

-- No foreign keys: checking one locks the row that it points to, the same few for all runs of an agent, and writes the lock
-- to disk. The code keeps them instead: no statement deletes a project, a user, an agent's version or a conversation (a
-- test looks), and each is read in the tenant before a run is created for it.
create table runs (
  tenant_id uuid not null,
  run_id uuid not null,
  project_id uuid not null,
  flow_id text not null,
  flow_version text not null,
  status text not null,
  origin text not null,
  -- Of a child run alone: the run that began it, the step that did, and its row in `run_children`.
  parent_run_id uuid,
  parent_step integer,
  parent_slot integer,
  -- The run at the top of the tree: its own id, if nobody began it.
  root_run_id uuid not null,
  -- Of a parallel branch of its parent's program: which.
  branch text,
  dry_run boolean not null,
  -- With `via`, how the version was chosen, or both null.
  agent_id uuid,
  agent_version text,
  conversation_id uuid,
  via text,
  -- Of a failed run alone.
  failure_message text,
  cancel_requested_at timestamptz,
  created_by uuid not null,
  created_at timestamptz not null,
  started_at timestamptz,
  -- Of a run that has ended, however it did.
  completed_at timestamptz,
  -- Of a run that waits: for what (`retry`, `timer`, `approval`, `children`), and until when at the latest.
  waiting_for text,
  wake_at timestamptz,
  -- Since when it has waited for something other than a retry, and how long it did before. A time limit leaves that out.
  parked_at timestamptz,
  parked_ms bigint not null default 0,
  -- The job that will carry the run on: removed with it when the run is cancelled.
  job_id bigint,
  -- Raised by every claim. A write that carries an older epoch changes nothing.
  lease_epoch bigint not null default 0,
  -- The number of the newest event: allocated under this row's lock.
  last_seq bigint not null default 0,
  calls bigint not null default 0,
  cost_usd numeric(30, 15) not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  primary key (tenant_id, run_id)
) with (fillfactor = 70);
create index runs_project on runs (tenant_id, project_id, run_id);
create index runs_agent on runs (tenant_id, agent_id, run_id);
create index runs_conversation on runs (tenant_id, conversation_id, run_id);
-- The runs below a root. Roots are not in it: they cost nothing.
create index runs_tree on runs (tenant_id, root_run_id, run_id) where parent_run_id is not null;

-- The columns of a run as the program reads them: listed here alone.
create view run_rows as
select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_slot, root_run_id,
  dry_run, agent_id, agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at,
  started_at, completed_at, waiting_for, wake_at, parked_at, parked_ms, lease_epoch, last_seq,
  calls, cost_usd::float8 as cost_usd, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens
from runs;

-- The children of a run. A child's end is written here, unseen, with what it used, runs below it included. Its parent
-- marks it as seen when it adds that to its own usage.
create table run_children (
  tenant_id uuid not null,
  parent_run_id uuid not null,
  slot integer not null,
  child_run_id uuid not null,
  -- Where the child stands in its parent's program.
  path text not null,
  -- `started`, or as the child ended: `completed`, `failed`, `cancelled`.
  state text not null,
  seen boolean not null default false,
  calls bigint not null default 0,
  cost_usd numeric(30, 15) not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  primary key (tenant_id, parent_run_id, slot)
) partition by range (parent_run_id);

create table run_payloads (
  tenant_id uuid not null,
  run_id uuid not null,
  input json not null,
  output json,
  primary key (tenant_id, run_id)
) partition by range (run_id);

-- The journal. A row stands before the step's effect begins; its result is written with the events and the usage that
-- follow from it, in one transaction.
create table run_steps (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  kind text not null,
  name text not null,
  status text not null,
  attempt integer not null,
  -- How many attempts the other side failed. Attempts lost to a crash are counted in `attempt` alone.
  failures integer not null default 0,
  request json not null,
  result json,
  started_at timestamptz not null,
  completed_at timestamptz,
  -- Where the step stands in its run's program; empty in an agent's turn.
  path text not null default '',
  -- The version of the form of `request` and `result`.
  format smallint not null default 1,
  primary key (tenant_id, run_id, step)
) partition by range (run_id);

-- One row a model call, failed ones included, with the prices it was charged at. A count that the provider did not give is
-- null, not zero.
create table run_model_calls (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  model_provider_id uuid not null,
  model text not null,
  outcome text not null,
  failure text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cache_read_tokens bigint,
  cache_write_tokens bigint,
  reasoning_tokens bigint,
  prompt_price numeric(20, 10),
  completion_price numeric(20, 10),
  cache_read_price numeric(20, 10),
  cache_write_price numeric(20, 10),
  reasoning_price numeric(20, 10),
  cost_usd numeric(30, 15),
  started_at timestamptz not null,
  completed_at timestamptz not null,
  primary key (tenant_id, run_id, step, attempt)
) partition by range (run_id);

-- The durable progress. `seq` is the SSE id. `position` only tells a reader on another replica which runs moved: the truth
-- is (run_id, seq).
create sequence run_event_position;
create table run_events (
  tenant_id uuid not null,
  run_id uuid not null,
  seq bigint not null,
  position bigint not null default nextval('run_event_position'),
  kind text not null,
  data json not null,
  created_at timestamptz not null,
  primary key (tenant_id, run_id, seq)
) partition by range (run_id);
-- Without a tenant: one reader a replica follows all runs.
create index run_events_position on run_events (position);

-- Text that is being streamed, for readers on other replicas and for those who join in the middle. Deleted when the step's
-- whole message is written. Unlogged: what a crash loses is streamed again.
create sequence run_delta_position;
create unlogged table run_deltas (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  text_offset integer not null,
  text text not null,
  position bigint not null default nextval('run_delta_position'),
  primary key (tenant_id, run_id, step, attempt, text_offset)
);
create index run_deltas_position on run_deltas (position);

-- Written in the transaction of the effect that it guards. Names what was made, never a secret.
create table idempotency_keys (
  tenant_id uuid not null references tenants,
  principal text not null,
  route text not null,
  key text not null check (length(key) between 1 and 255),
  body_digest bytea not null check (octet_length(body_digest) = 32),
  object_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, principal, route, key)
);
-- For the removal of old keys of all tenants.
create index idempotency_keys_created on idempotency_keys (created_at);

-- The audit trail: decisions of access, the chain that they stand in, and what purges leave behind. No row refers to
-- another table: a record outlives what it is about.

-- One row a writer: about as many as there are replicas, because a slot whose lease has run out is taken again. Its epoch
-- fences whoever held it before.
create table audit_writers (
  slot integer primary key check (slot > 0),
  epoch bigint not null,
  -- Of the last decision; the next one is one higher.
  position bigint not null,
  -- Of the last decision; the next one is not earlier.
  decided_at timestamptz not null,
  -- Of the last batch of each chain; 32 zero bytes before the first.
  allowed_digest bytea not null check (length(allowed_digest) = 32),
  denied_digest bytea not null check (length(denied_digest) = 32),
  leased_until timestamptz
) with (fillfactor = 50);

-- By outcome first, because the two are kept for different times.
create table audit_decisions (
  tenant_id uuid not null,
  slot integer not null,
  position bigint not null,
  decided_at timestamptz not null,
  outcome text not null,
  id uuid not null,
  actor_subject text not null,
  action text not null,
  resource text not null,
  reason text not null,
  stage text not null,
  failing_part text,
  check_user text,
  check_relation text,
  check_object text,
  store_id text,
  model_id text,
  duration_us bigint not null,
  request_id uuid,
  trace_id text,
  key_id uuid,
  route text,
  run_id uuid,
  client_address text
) partition by list (outcome);
-- Time and position rise together within a slot, so one index serves the order and the bounds.
create index audit_decisions_slot on audit_decisions (tenant_id, slot, decided_at, position);
create index audit_decisions_actor on audit_decisions (tenant_id, actor_subject, slot, decided_at, position);
create index audit_decisions_resource on audit_decisions (tenant_id, resource, slot, decided_at, position);
create index audit_decisions_run on audit_decisions (tenant_id, run_id, slot, decided_at, position)
  where run_id is not null;
-- For purges and exports, which read by time across tenants.
create index audit_decisions_time on audit_decisions using brin (decided_at) with (autosummarize = on);

-- A chain for each slot and outcome, so that a purge takes whole beginnings of chains.
create table audit_batches (
  slot integer not null,
  outcome text not null,
  first_position bigint not null,
  last_position bigint not null,
  row_count integer not null,
  -- Of its last decision. No batch spans two months, so a month's partitions go together.
  decided_at timestamptz not null,
  digest bytea not null check (length(digest) = 32),
  previous_digest bytea not null check (length(previous_digest) = 32),
  primary key (slot, outcome, first_position, decided_at)
) partition by list (outcome);

create table audit_decisions_allowed partition of audit_decisions for values in ('allowed') partition by range (decided_at);
create table audit_decisions_denied partition of audit_decisions for values in ('denied') partition by range (decided_at);
create table audit_batches_allowed partition of audit_batches for values in ('allowed') partition by range (decided_at);
create table audit_batches_denied partition of audit_batches for values in ('denied') partition by range (decided_at);

-- How far a chain was purged; signed where the server had a key at the purge.
create table audit_anchors (
  slot integer not null,
  outcome text not null check (outcome in ('allowed', 'denied')),
  through_position bigint not null,
  -- Of the last batch that went.
  digest bytea not null check (length(digest) = 32),
  -- Since the chain began.
  rows_purged bigint not null,
  purged_at timestamptz not null,
  public_key bytea check (length(public_key) = 32),
  signature bytea check (length(signature) = 64),
  primary key (slot, outcome),
  check ((public_key is null) = (signature is null))
);

-- Webhooks: endpoints, the events that are reported to them, deliveries and their attempts

create table webhook_endpoints (
  tenant_id uuid not null references tenants,
  endpoint_id uuid not null,
  url text not null check (length(url) <= 2048),
  events text[] not null check (cardinality(events) between 1 and 3
    and events <@ '{run.finished,improvement-pass.finished,approval.requested}'::text[]),
  secret_environment text not null,
  secret_name text not null,
  -- The secret before its last change signs as well until then.
  previous_environment text,
  previous_name text,
  previous_until timestamptz,
  -- Null throughout where no filter was given.
  has_filter boolean not null,
  flow_ids text[],
  project_id uuid,
  include_dry_runs boolean,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Nothing goes out after it. The row stays until its last delivery was dropped.
  unregistered_at timestamptz,
  primary key (tenant_id, endpoint_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users,
  check ((previous_environment is null) = (previous_name is null)),
  check ((previous_environment is null) = (previous_until is null)),
  check (has_filter or (flow_ids is null and project_id is null and include_dry_runs is null))
);
create index webhook_endpoints_registered on webhook_endpoints (tenant_id, endpoint_id) where unregistered_at is null;

-- How an endpoint's deliveries ended, counted as they end.
create table webhook_endpoint_counts (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  -- The newest attempt failed.
  is_failing boolean not null default false,
  -- The newest attempt took long, however it ended.
  is_slow boolean not null default false,
  last_delivered_at timestamptz,
  last_failed_at timestamptz,
  last_error text,
  last_status smallint,
  primary key (tenant_id, endpoint_id),
  foreign key (tenant_id, endpoint_id) references webhook_endpoints on delete cascade
) with (fillfactor = 50);

create table webhook_events (
  tenant_id uuid not null,
  event_id uuid not null,
  type text not null,
  -- The whole body as it is sent, every time.
  body text not null,
  -- Of run.finished.
  run_id uuid,
  created_at timestamptz not null,
  primary key (tenant_id, event_id)
) partition by range (event_id);

create table webhook_deliveries (
  tenant_id uuid not null,
  delivery_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  -- Of the event, kept here for the lists.
  type text not null,
  run_id uuid,
  -- The delivery that this one sends again, and the newest one that sends this one again.
  resends uuid,
  resent_as uuid,
  -- `being-sent`, `delivered` or `failed`. Not `being-sent`: `ended_at` says since when.
  state text not null,
  -- Those that have ended.
  attempts integer not null default 0,
  next_attempt_at timestamptz,
  last_error text,
  last_status smallint,
  job_id bigint,
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (tenant_id, delivery_id)
) partition by range (delivery_id);
-- A list of all states merges three ranges of it: an end changes `state`, and with it an entry in every index.
create index webhook_deliveries_state on webhook_deliveries (tenant_id, endpoint_id, state, delivery_id);
-- What still waits: nothing that it needs is dropped.
create index webhook_deliveries_waiting on webhook_deliveries (event_id) where state = 'being-sent';

-- Written once, when the attempt has ended. Until then the delivery's job, under its lease, is all that says of it.
create table webhook_attempts (
  tenant_id uuid not null,
  delivery_id uuid not null,
  attempt integer not null,
  endpoint_id uuid not null,
  begun_at timestamptz not null,
  ended_at timestamptz,
  duration_ms integer,
  -- Null: it was delivered.
  reason text,
  status smallint,
  -- What went wrong, for a person: names the rule and the address that refuse it, and never a secret. At most 1000
  -- characters, as the answer is at most 16 KiB: both are cut where they are taken.
  message text,
  -- Connected to, or tried.
  address inet,
  answer bytea,
  primary key (tenant_id, delivery_id, attempt)
) partition by range (delivery_id);
