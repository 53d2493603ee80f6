-- Who may do what: people and service accounts, what their keys may do, orgs, teams, grants, reviewers,
-- and what of it the authorization server has been told.

alter table users
  add column kind text not null default 'person' check (kind in ('person', 'service-account')),
  add column email text check (length(email) between 3 and 320),
  -- The email as it is matched: lowercase.
  add column email_key text check ((email_key is null) = (email is null)),
  -- The users that stand already were seeded as admins.
  add column tenant_role text not null default 'admin' check (tenant_role in ('admin', 'member')),
  add column created_by uuid,
  add column deactivated_at timestamptz,
  add foreign key (tenant_id, created_by) references users,
  add check (kind = 'person' or (tenant_role = 'member' and email is null));
create unique index users_email on users (tenant_id, email_key);
create index users_admin on users (tenant_id, user_id) where tenant_role = 'admin' and deactivated_at is null;

-- What a key may do at most; its owner's standing is asked beside it.
alter table tokens
  add column role text not null default 'admin' check (role in ('admin', 'member')),
  add column capabilities text[] not null
    default '{access:write,env:write,keys:write,secrets:write}'
    check (capabilities <@ '{access:write,env:write,keys:write,secrets:write}'::text[]),
  -- A key that is limited to one project.
  add column project_id uuid,
  add foreign key (tenant_id, project_id) references projects;

-- A code that a person turns into a first key, once. A newer one ends the one before it. The key may do
-- no more than the key could that made the code, and lives no longer.
create table enrolments (
  tenant_id uuid not null,
  enrolment_id uuid not null,
  user_id uuid not null,
  digest bytea not null check (octet_length(digest) = 32),
  created_by uuid not null,
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
-- A code is looked up before its tenant is known.
create unique index enrolments_digest on enrolments (digest);
create unique index enrolments_open on enrolments (tenant_id, user_id) where ended_at is null;

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

alter table projects
  add column org_id uuid,
  add foreign key (tenant_id, org_id) references orgs;
create index projects_org on projects (tenant_id, org_id, project_id) where org_id is not null;

-- A role on a project with no membership behind it, as the creators of old projects have.
create table project_direct_roles (
  tenant_id uuid not null,
  project_id uuid not null,
  user_id uuid not null,
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer')),
  primary key (tenant_id, project_id, user_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, user_id) references users
);
create index project_direct_roles_user on project_direct_roles (tenant_id, user_id);

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

-- Every way into a project that is not the tenant admins': one row a person and way. A legacy `member`
-- reads as `viewer`. Users who were deactivated have none.
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

-- The tenant's store at the authorization server, and the model that checks name. An older program never
-- takes a newer version back.
create table authz_stores (
  tenant_id uuid primary key references tenants,
  store_id text not null,
  model_id text not null,
  model_version integer not null,
  model_digest bytea not null check (octet_length(model_digest) = 32),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- What was asked for and what the authorization server has been told, an object a row: a change raises
-- `desired` in its own transaction, applying sets `applied`.
create table authz_objects (
  tenant_id uuid not null references tenants,
  object text not null check (length(object) <= 200),
  desired bigint not null default 1,
  applied bigint not null default 0,
  primary key (tenant_id, object)
) with (fillfactor = 70);
create index authz_objects_unapplied on authz_objects (tenant_id, object) where applied < desired;
