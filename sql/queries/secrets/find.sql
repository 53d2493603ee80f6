select s.environment, s.name, s.version, s.created_by, s.created_at, s.updated_at,
  (select array_agg(v.version order by v.version desc) from secret_versions v
    where v.tenant_id = s.tenant_id and v.environment = s.environment and v.name = s.name) as versions,
  (select array_agg(v.created_at order by v.version desc) from secret_versions v
    where v.tenant_id = s.tenant_id and v.environment = s.environment and v.name = s.name) as version_times
from secrets s
where s.tenant_id = $1 and s.environment = $2 and s.name = $3
