-- Secrets: values encrypted under a data key for each version, which a key-management service wraps.

create table secrets (
  tenant_id uuid not null references tenants,
  environment text not null check (environment ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
  name text not null check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$' and name !~* '^svc_'),
  -- The version that stands; versions are never used again while the secret exists.
  version integer not null check (version > 0),
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, environment, name),
  foreign key (tenant_id, created_by) references users
);

-- The version that stands and the one before it. What is in a row can be read only as that tenant's,
-- under that environment and name, as that version.
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

-- A provider's API key: one that the operator listed, or a secret of the tenant.
alter table model_providers
  add column api_key_environment text,
  add column api_key_secret text,
  add check ((api_key_environment is null) = (api_key_secret is null)),
  add check (api_key_name is null or api_key_secret is null);
