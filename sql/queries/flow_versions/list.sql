select version, position, created_by, created_at
from flow_versions
where tenant_id = $1 and id = $2
  and ($3::bigint is null or position {{>|<}} $3)
order by position {{asc|desc}}
limit $4
