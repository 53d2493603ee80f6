select f.id, v.definition, uses.uses
from flows f
join flow_versions v on v.tenant_id = f.tenant_id and v.id = f.id
cross join lateral (
  select coalesce(json_agg(json_build_object(
    'kind', u.kind, 'name', u.name, 'id', coalesce(u.tool_id, u.agent_id, u.used_id), 'version', u.used_version
  ) order by u.position), '[]') as uses
  from flow_version_uses u
  where u.tenant_id = $1 and u.id = v.id and u.version = v.version
) uses
where f.tenant_id = $1 and f.project_id = $2 and f.flow_id = $3 and v.version = $4
