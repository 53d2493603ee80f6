select conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
from conversations
where tenant_id = $1 and agent_id = $4
  and ($5::uuid is null or project_id = $5)
  and ($2::uuid is null or conversation_id {{>|<}} $2)
order by conversation_id {{asc|desc}}
limit $3
