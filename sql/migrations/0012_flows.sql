-- Flows and their versions.

create table flows (
  tenant_id uuid not null,
  id uuid not null,
  project_id uuid not null,
  -- `namespace.name` of its definitions: runs name their flow by it.
  flow_id text not null check (length(flow_id) between 3 and 127),
  title text not null check (length(title) <= 200),
  description text not null check (length(description) <= 16384),
  -- The highest semantic version, and the one promoted for the project's scope.
  latest_version text,
  live_version text,
  -- The position of the newest version: allocated under this row's lock.
  last_position bigint not null default 0,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Since when nothing new is started with it and lists leave it out; null: it is not archived.
  archived_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, project_id, flow_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users
);
create index flows_project on flows (tenant_id, project_id, id);
create index flows_flow on flows (tenant_id, flow_id, id);

create table flow_versions (
  tenant_id uuid not null,
  id uuid not null,
  version text not null check (length(version) between 5 and 100),
  -- In the order in which the versions were made.
  position bigint not null check (position > 0),
  definition json not null,
  -- SHA-256 of the definition, whatever the order of its keys.
  digest bytea not null check (length(digest) = 32),
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, id, version),
  unique (tenant_id, id, position),
  foreign key (tenant_id, id) references flows,
  foreign key (tenant_id, created_by) references users
);
alter table flows
  add foreign key (tenant_id, id, latest_version) references flow_versions,
  add foreign key (tenant_id, id, live_version) references flow_versions;

-- What a version names of its project, and what that was when the version was made.
create table flow_version_uses (
  tenant_id uuid not null,
  id uuid not null,
  version text not null,
  position integer not null,
  kind text not null check (kind in ('tool', 'agent', 'flow')),
  -- As the definition names it.
  name text not null,
  -- The one of its kind.
  tool_id uuid,
  agent_id uuid,
  used_id uuid,
  -- Of an agent or a flow, if the definition names one. It is there: no version is ever deleted.
  used_version text,
  primary key (tenant_id, id, version, position),
  foreign key (tenant_id, id, version) references flow_versions,
  foreign key (tenant_id, tool_id) references tools,
  foreign key (tenant_id, agent_id) references agents,
  foreign key (tenant_id, used_id) references flows,
  check (num_nonnulls(tool_id, agent_id, used_id) = 1)
);
-- A tool that a version names is not deleted.
create index flow_version_uses_tool on flow_version_uses (tenant_id, tool_id) where tool_id is not null;
