select agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at
from agents
where tenant_id = $1
  and ($2::uuid is null or project_id = $2)
  and ($3::uuid is null or agent_id {{>|<}} $3)
order by agent_id {{asc|desc}}
limit $4
