-- The identity providers of a tenant, each with the domains that it speaks for and the teams that its groups stand for.
-- The planner takes the statement into the one that calls it, so that an index serves what that one looks for.
create function identity_providers_of(tenant uuid)
returns table (
  identity_provider_id uuid, managed_by text, name text, issuer text, client_id text, secret_environment text,
  secret_name text, scopes text[], email_trust text, creates_people boolean, groups_claim text, created_by uuid,
  created_at timestamptz, updated_at timestamptz, domains text[], groups jsonb
)
language sql stable as $$
  select p.identity_provider_id, p.managed_by, p.name, p.issuer, p.client_id, p.secret_environment, p.secret_name, p.scopes,
    p.email_trust, p.creates_people, p.groups_claim, p.created_by, p.created_at, p.updated_at,
    array(
      select d.domain from identity_provider_domains d
      where d.tenant_id = p.tenant_id and d.identity_provider_id = p.identity_provider_id
      order by d.domain
    ),
    (
      select coalesce(jsonb_agg(jsonb_build_object('group', g.group_name, 'teamId', g.team_id, 'role', g.role)
        order by g.group_name, g.team_id), '[]')
      from identity_provider_groups g
      where g.tenant_id = p.tenant_id and g.identity_provider_id = p.identity_provider_id
    )
  from identity_providers p
  where p.tenant_id = tenant and p.retired_at is null
$$;
