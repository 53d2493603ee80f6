-- What names stand for in the project, in the order in which they are given: null for what is not there. An agent is named by
-- its name or its id.
select w.kind, w.name, w.version, found.used_id,
  w.version is null
    or exists (select from agent_versions v where v.tenant_id = $1 and w.kind = 'agent' and v.agent_id = found.used_id and v.version = w.version)
    or exists (select from flow_versions v where v.tenant_id = $1 and w.kind = 'flow' and v.id = found.used_id and v.version = w.version)
    as has_version
from unnest($3::text[], $4::text[], $5::text[]) with ordinality as w (kind, name, version, position)
left join lateral (
  select used_id
  from (
    select tool_id as used_id, true as by_name from tools
    where tenant_id = $1 and project_id = $2 and w.kind = 'tool' and name = w.name
    union all
    select agent_id, name = w.name from agents
    where tenant_id = $1 and project_id = $2 and w.kind = 'agent' and (name = w.name or agent_id::text = lower(w.name))
    union all
    select id, true from flows
    where tenant_id = $1 and project_id = $2 and w.kind = 'flow' and flow_id = w.name
  ) named
  order by by_name desc
  limit 1
) found on true
order by w.position
