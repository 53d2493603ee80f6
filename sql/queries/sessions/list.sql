select s.session_id, s.method, s.client_address, s.user_agent, s.created_at, s.active_at,
  least(s.expires_at, s.created_at + make_interval(hours => g.session_hours)) as expires_at
from sessions s
join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
left join sign_in_settings g on g.tenant_id = s.tenant_id
where s.tenant_id = $1
  and s.user_id = $2
  and ($3::uuid is null or s.session_id {{>|<}} $3)
  and ($7::uuid is null or s.project_id = $7)
  and s.ended_at is null
  and least(s.expires_at, s.created_at + make_interval(hours => g.session_hours)) > $5
  and s.active_at > greatest($6, $5 - make_interval(mins => g.session_idle_minutes + 1))
  and u.deactivated_at is null
  and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
order by s.session_id {{asc|desc}}
limit $4
