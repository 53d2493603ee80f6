-- Sign-in through identity providers: whom a tenant trusts, who their subjects are, and what the tenant sets.

create table identity_providers (
  tenant_id uuid not null references tenants,
  identity_provider_id uuid not null,
  -- Who keeps it: the tenant's admins, or the operator in a file.
  managed_by text not null check (managed_by in ('tenant', 'operator')),
  -- Of one that the file names no more, its id.
  name text not null check (length(name) between 1 and 200),
  issuer text not null check (length(issuer) between 1 and 2048),
  client_id text not null check (length(client_id) between 1 and 500),
  -- The client's secret is never stored here: a tenant's is a secret of the tenant, an operator's stands in a file.
  secret_environment text,
  secret_name text,
  scopes text[] not null check (cardinality(scopes) <= 20),
  email_trust text not null check (email_trust in ('claim', 'provider')),
  creates_people boolean not null,
  groups_claim text check (length(groups_claim) between 1 and 200),
  -- The operator's file names it no more. Its identities stay, should the file name it again.
  retired_at timestamptz,
  created_by uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, identity_provider_id),
  unique (tenant_id, managed_by, name),
  unique (tenant_id, managed_by, issuer, client_id),
  foreign key (tenant_id, created_by) references users,
  check ((secret_environment is null) = (secret_name is null)),
  check ((managed_by = 'operator') = (created_by is null)),
  check (managed_by = 'tenant' or secret_name is null)
);
-- Without a tenant: a browser names the provider before its tenant is known.
create unique index identity_providers_id on identity_providers (identity_provider_id);

-- One provider speaks for a domain. The operator's file does not clash with what stood before it.
create table identity_provider_domains (
  tenant_id uuid not null,
  managed_by text not null,
  domain text not null check (domain = lower(domain) and length(domain) between 1 and 253),
  identity_provider_id uuid not null,
  primary key (tenant_id, managed_by, domain),
  foreign key (tenant_id, identity_provider_id) references identity_providers on delete cascade
);
create index identity_provider_domains_provider on identity_provider_domains (tenant_id, identity_provider_id);

create table identity_provider_groups (
  tenant_id uuid not null,
  identity_provider_id uuid not null,
  group_name text not null check (length(group_name) between 1 and 256),
  team_id uuid not null,
  role text not null check (role in ('admin', 'member')),
  primary key (tenant_id, identity_provider_id, group_name, team_id),
  foreign key (tenant_id, identity_provider_id) references identity_providers on delete cascade,
  foreign key (tenant_id, team_id) references teams on delete cascade
);
create index identity_provider_groups_team on identity_provider_groups (tenant_id, team_id);

create table identities (
  tenant_id uuid not null,
  identity_id uuid not null,
  identity_provider_id uuid not null,
  subject text not null check (length(subject) between 1 and 255),
  user_id uuid not null,
  -- The email that it was bound by.
  email_then text not null check (length(email_then) between 3 and 320),
  bound_at timestamptz not null,
  last_used_at timestamptz not null,
  primary key (tenant_id, identity_id),
  unique (tenant_id, identity_provider_id, subject),
  unique (tenant_id, identity_provider_id, user_id),
  foreign key (tenant_id, identity_provider_id) references identity_providers on delete cascade,
  foreign key (tenant_id, user_id) references users
);
create index identities_user on identities (tenant_id, user_id, identity_id);

-- What a tenant sets of its own. Without a row, what the server says.
create table sign_in_settings (
  tenant_id uuid primary key references tenants,
  token_sign_in text not null check (token_sign_in in ('on', 'admins', 'off')),
  -- Shorter than the server's; null: the server's.
  session_idle_minutes integer check (session_idle_minutes between 1 and 43200),
  session_hours integer check (session_hours between 1 and 720),
  changed_by uuid not null,
  changed_at timestamptz not null,
  foreign key (tenant_id, changed_by) references users
);

-- The provider whose groups gave the membership; null: somebody did.
alter table team_memberships add column source_provider_id uuid;

-- The provider by which the person signed in. A provider that is deleted leaves its ended sessions.
alter table sessions add column identity_provider_id uuid;
