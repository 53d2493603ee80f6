-- The agents that a version of a flow names, with the version that is named, else the live one, else the latest.
select w.name, w.version as named, a.agent_id, v.version, w.version is null and a.live_version is not null as is_live
from unnest($2::text[], $3::uuid[], $4::text[]) w (name, id, version)
join agents a on a.tenant_id = $1 and a.agent_id = w.id and a.archived_at is null
join agent_versions v on v.tenant_id = a.tenant_id and v.agent_id = a.agent_id
  and v.version = coalesce(w.version, a.live_version, a.latest_version)
