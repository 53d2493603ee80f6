select conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
from conversations
where tenant_id = $1
  and ($2::uuid is null or conversation_id {{>|<}} $2)
order by conversation_id {{asc|desc}}
limit $3
