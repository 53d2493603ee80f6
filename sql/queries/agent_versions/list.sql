select agent_id, version, position, model_provider_id, model, created_by, created_at
from agent_versions
where tenant_id = $1 and agent_id = $2
  and ($3::bigint is null or position {{>|<}} $3)
order by position {{asc|desc}}
limit $4
