-- The agents of a project by their names or ids, with the version that is named, else the live one, else the latest.
select w.name, w.version as named, a.agent_id, v.version, w.version is null and a.live_version is not null as is_live
from unnest($3::text[], $4::text[]) w (name, version)
join agents a on a.tenant_id = $1 and a.project_id = $2 and (a.name = w.name or a.agent_id::text = w.name) and a.archived_at is null
join agent_versions v on v.tenant_id = a.tenant_id and v.agent_id = a.agent_id
  and v.version = coalesce(w.version, a.live_version, a.latest_version)
