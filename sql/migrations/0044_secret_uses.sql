-- Where a secret may be sent: by name, to one target, for one project or for every project of the tenant.
create table secret_uses (
  tenant_id uuid not null references tenants,
  secret_use_id uuid not null,
  -- As tools name it: the environment decides the value.
  name text not null check (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,127}$' and name !~* '^svc_'),
  -- Null: every project.
  project_id uuid,
  -- 'origin:https://api.example.com': scheme, host, and the port unless it is the scheme's own.
  target text not null check (length(target) between 1 and 2100),
  created_by uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, secret_use_id),
  foreign key (tenant_id, project_id) references projects (tenant_id, project_id),
  foreign key (tenant_id, created_by) references users (tenant_id, user_id)
);

create unique index secret_uses_of_project on secret_uses (tenant_id, name, target, project_id) where project_id is not null;
create unique index secret_uses_of_tenant on secret_uses (tenant_id, name, target) where project_id is null;

-- The uses of the tools that stand. A host that is written in other characters than ASCII is not found by its use; the doctor
-- names such a tool. Ids are of version 7, with the time of the first such tool.
insert into secret_uses (tenant_id, secret_use_id, name, project_id, target, created_by, created_at)
select tenant_id, (substr(ms, 1, 8) || '-' || substr(ms, 9, 4) || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
  name, project_id, target, created_by, created_at
from (
  select distinct on (t.tenant_id, named.name, t.project_id, origin.target)
    t.tenant_id, named.name, t.project_id, origin.target, t.created_by, t.created_at,
    lpad(to_hex(floor(extract(epoch from t.created_at) * 1000)::bigint), 12, '0') as ms
  from tools t
  cross join lateral (
    select header ->> 'secret' as name from json_array_elements(t.secret_headers) header
    union
    select t.signing_secret where t.signing_secret is not null
  ) named
  cross join lateral (
    select 'origin:' || regexp_replace(lower(substring(t.url from '^[A-Za-z]+://[^/?#\\]+') collate "C"),
      '^(http(?=://.*:80$)|https(?=://.*:443$))(.*):[0-9]+$', '\1\2') as target
  ) origin
  where origin.target is not null
  order by t.tenant_id, named.name, t.project_id, origin.target, t.created_at, t.tool_id
) stands;
