select session_id, method, client_address, user_agent, created_at, active_at, expires_at
from open_sessions(moment => $6, idle => $7, life => $8, by_token => $9, by_console => $10)
where tenant_id = $1
  and user_id = $2
  and ($3::uuid is null or session_id {{>|<}} $3)
  and ($5::uuid is null or project_id = $5)
order by session_id {{asc|desc}}
limit $4
