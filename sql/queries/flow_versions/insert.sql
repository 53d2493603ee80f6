-- The caller holds the flow's row lock and says whether this version is its latest.
with flow as (
  update flows
  set last_position = last_position + 1, updated_at = $7,
    latest_version = case when $8 then $3 else latest_version end
  where tenant_id = $1 and id = $2
  returning last_position
), made as (
  insert into flow_versions (tenant_id, id, version, position, definition, digest, created_by, created_at)
  select $1, $2, $3, last_position, $4, $5, $6, $7 from flow
)
insert into flow_version_uses (tenant_id, id, version, position, kind, name, tool_id, agent_id, used_id, used_version)
select $1, $2, $3, u.position, u.kind, u.name,
  case u.kind when 'tool' then u.used_id end,
  case u.kind when 'agent' then u.used_id end,
  case u.kind when 'flow' then u.used_id end,
  u.version
from unnest($9::text[], $10::text[], $11::uuid[], $12::text[]) with ordinality as u (kind, name, used_id, version, position)
