-- The flows that a version of a flow names, with the version that is named, else the live one, else the latest.
select w.name, w.version as named, v.version
from unnest($2::text[], $3::uuid[], $4::text[]) w (name, id, version)
join flows f on f.tenant_id = $1 and f.id = w.id and f.archived_at is null
join flow_versions v on v.tenant_id = f.tenant_id and v.id = f.id
  and v.version = coalesce(w.version, f.live_version, f.latest_version)
