-- Guardrails: those of an agent's version, the policies of tenants and projects, and what was decided of a run.
alter table agent_versions
  add column guardrails json not null default '[]',
  add column streaming text not null default 'held' check (streaming in ('held', 'unchecked'));

-- A policy never changes: the next version takes its place. Without a project it is the tenant's.
create table policies (
  tenant_id uuid not null references tenants,
  project_id uuid,
  version integer not null check (version > 0),
  guardrails json not null,
  streaming text not null check (streaming in ('held', 'unchecked')),
  created_by uuid not null,
  created_at timestamptz not null,
  foreign key (tenant_id, project_id) references projects (tenant_id, project_id),
  foreign key (tenant_id, created_by) references users (tenant_id, user_id)
);
create unique index policies_of_tenant on policies (tenant_id, version) where project_id is null;
create unique index policies_of_project on policies (tenant_id, project_id, version) where project_id is not null;

-- Each check that was made, in the commit of its step: never the text that was judged, but its digest.
create table run_checks (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  ordinal integer not null,
  point text not null check (point in ('input', 'tool.arguments', 'tool.result', 'output')),
  -- Of the arguments of a call: which of the answer's, from 0.
  call integer,
  name text not null,
  evaluator text not null,
  origin text not null check (origin in ('tenant', 'project', 'agent')),
  policy_version integer,
  verdict text not null check (verdict in ('allow', 'block', 'redact', 'approve', 'failed')),
  code text,
  reason text,
  on_error text check (on_error in ('block', 'allow-unsafely')),
  duration_us bigint not null,
  digest bytea not null,
  created_at timestamptz not null,
  primary key (tenant_id, run_id, step, attempt, ordinal)
) partition by range (run_id);

-- A message that a check refused is no part of what a model is told later.
alter table conversation_messages add column refused boolean not null default false;
