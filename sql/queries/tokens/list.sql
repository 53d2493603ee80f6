select token_id, name, last_four, seed, created_at, expires_at, role, capabilities, project_id, last_used_at
from tokens
where tenant_id = $1
  and user_id = $2
  and ($3::uuid is null or token_id {{>|<}} $3)
  and revoked_at is null
  and (expires_at is null or expires_at > $5)
  and ($6::uuid is null or project_id = $6)
order by token_id {{asc|desc}}
limit $4
