select agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from agents
  where tenant_id = $1 and project_id = way.readable_id
    and agent_id {{>|<}}
      coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
  order by agent_id {{asc|desc}}
  limit $4
) one
order by agent_id {{asc|desc}}
limit $4
