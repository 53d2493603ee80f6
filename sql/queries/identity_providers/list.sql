select p.identity_provider_id, p.managed_by, p.name, p.issuer, p.client_id, p.secret_environment, p.secret_name, p.scopes,
  p.email_trust, p.creates_people, p.groups_claim, p.created_by, p.created_at, p.updated_at,
  array(
    select d.domain from identity_provider_domains d
    where d.tenant_id = p.tenant_id and d.identity_provider_id = p.identity_provider_id
    order by d.domain
  ) as domains,
  (
    select coalesce(jsonb_agg(jsonb_build_object('group', g.group_name, 'teamId', g.team_id, 'role', g.role)
      order by g.group_name, g.team_id), '[]')
    from identity_provider_groups g
    where g.tenant_id = p.tenant_id and g.identity_provider_id = p.identity_provider_id
  ) as groups
from identity_providers p
where p.tenant_id = $1 and p.retired_at is null
  and ($2::uuid is null or p.identity_provider_id {{>|<}} $2)
order by p.identity_provider_id {{asc|desc}}
limit $3
