select f.flow_id, v.id, v.version, v.definition, v.digest, v.created_by, v.created_at
from flow_versions v
join flows f on f.tenant_id = v.tenant_id and f.id = v.id
where v.tenant_id = $1 and v.id = $2 and v.version = $3
