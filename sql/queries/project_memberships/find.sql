select m.user_id, u.kind, u.display_name, u.email as primary_email, m.role, m.joined_at, u.deactivated_at
from project_memberships m
join users u on u.tenant_id = m.tenant_id and u.user_id = m.user_id
where m.tenant_id = $1 and m.project_id = $2 and m.user_id = $3
