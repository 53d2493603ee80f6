select conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from conversations
  where tenant_id = $1 and project_id = way.readable_id
    and conversation_id {{>|<}}
      coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
  order by conversation_id {{asc|desc}}
  limit $4
) one
order by conversation_id {{asc|desc}}
limit $4
