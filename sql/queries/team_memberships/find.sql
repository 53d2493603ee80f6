select m.team_id, m.user_id, u.kind, u.display_name, m.role, m.joined_at, m.source_provider_id,
  u.deactivated_at
from team_memberships m
join users u on u.tenant_id = m.tenant_id and u.user_id = m.user_id
where m.tenant_id = $1 and m.team_id = $2 and m.user_id = $3
