select s.session_id, s.method, s.client_address, s.user_agent, s.created_at, s.active_at, s.expires_at
from sessions s
join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
where s.tenant_id = $1
  and s.user_id = $2
  and ($3::uuid is null or s.session_id {{>|<}} $3)
  and ($7::uuid is null or s.project_id = $7)
  and s.ended_at is null and s.expires_at > $5 and s.active_at > $6
  and u.deactivated_at is null
  and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
order by s.session_id {{asc|desc}}
limit $4
