-- Variables of environments, which are no secrets. An environment has no row of its own.
create table environment_variables (
  tenant_id uuid not null references tenants,
  environment text not null check (environment ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
  name text not null check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$' and name !~* '^svc_'),
  value text not null check (octet_length(value) <= 32768),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_by uuid not null,
  updated_at timestamptz not null,
  primary key (tenant_id, environment, name),
  foreign key (tenant_id, created_by) references users (tenant_id, user_id),
  foreign key (tenant_id, updated_by) references users (tenant_id, user_id)
);

create unique index environment_variables_case on environment_variables (tenant_id, environment, lower(name collate "C"));
