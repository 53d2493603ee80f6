-- Tenants, their users, bearer tokens and projects.
-- The tenant leads every primary and foreign key: no row can point into another tenant, and the
-- tables can be distributed by tenant.

create table tenants (
  tenant_id uuid primary key,
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null
);

create table users (
  tenant_id uuid not null references tenants,
  user_id uuid not null,
  display_name text not null check (length(display_name) between 1 and 200),
  created_at timestamptz not null,
  primary key (tenant_id, user_id)
);

create table tokens (
  tenant_id uuid not null,
  token_id uuid not null,
  user_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  -- The token itself is never stored. Four characters are kept so that a person can tell tokens apart.
  digest bytea not null check (octet_length(digest) = 32),
  last_four text not null,
  -- The tenant's seed token is replaced at every start that brings another one.
  seed boolean not null default false,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  primary key (tenant_id, token_id),
  foreign key (tenant_id, user_id) references users
);
-- A credential is looked up before its tenant is known.
create unique index tokens_digest on tokens (digest);
create index tokens_user on tokens (tenant_id, user_id, token_id);
create unique index tokens_seed on tokens (tenant_id) where seed;

create table projects (
  tenant_id uuid not null references tenants,
  project_id uuid not null,
  name text not null check (length(name) between 1 and 200),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, project_id),
  foreign key (tenant_id, created_by) references users
);

create table project_memberships (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer', 'member')),
  joined_at timestamptz not null,
  primary key (tenant_id, project_id, user_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, user_id) references users
);
create index project_memberships_user on project_memberships (tenant_id, user_id);
