select t.team_id, t.name, m.role
from team_memberships m
join teams t on t.tenant_id = m.tenant_id and t.team_id = m.team_id
join users u on u.tenant_id = m.tenant_id and u.user_id = m.user_id and u.deactivated_at is null
where m.tenant_id = $1 and m.user_id = $2
order by t.team_id
limit $3
