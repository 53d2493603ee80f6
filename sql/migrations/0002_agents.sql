-- What an agent's turn is made of: model providers and their prices, HTTP tools, agents and their
-- versions, conversations.

create table model_providers (
  tenant_id uuid not null references tenants,
  model_provider_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  base_url text not null check (length(base_url) <= 2048),
  -- The name of a key that the operator listed, never the key.
  api_key_name text,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, model_provider_id),
  unique (tenant_id, name),
  foreign key (tenant_id, created_by) references users
);

-- US dollars per million tokens. A missing price of a part falls back to the price of its whole:
-- cache tokens are part of the prompt, reasoning tokens part of the completion.
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

create table tools (
  tenant_id uuid not null,
  tool_id uuid not null,
  project_id uuid not null,
  name text not null check (name ~ '^[a-zA-Z0-9_-]{1,64}$'),
  description text not null check (length(description) <= 4000),
  -- JSON Schema of the arguments object.
  arguments_schema jsonb not null,
  url text not null check (length(url) <= 2048),
  timeout_ms integer not null check (timeout_ms between 1 and 600000),
  -- An idempotent tool is called again after a crash; any other fails its run instead.
  idempotent boolean not null,
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, tool_id),
  unique (tenant_id, project_id, name),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users
);
create index tools_project on tools (tenant_id, project_id, tool_id);

create table agents (
  tenant_id uuid not null,
  agent_id uuid not null,
  project_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  description text not null check (length(description) <= 4000),
  -- The highest semantic version, and the one promoted for the project's scope.
  latest_version text,
  live_version text,
  -- The number of the newest version: allocated under this row's lock.
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
  parameters jsonb not null,
  limits jsonb not null,
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, agent_id, version),
  unique (tenant_id, agent_id, position),
  foreign key (tenant_id, agent_id) references agents,
  foreign key (tenant_id, model_provider_id, model) references models,
  foreign key (tenant_id, created_by) references users
);
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
