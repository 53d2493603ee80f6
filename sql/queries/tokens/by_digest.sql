select t.tenant_id, t.user_id, t.token_id, t.expires_at, t.role, t.capabilities, t.project_id, t.last_used_at
from tokens t
join users u on u.tenant_id = t.tenant_id and u.user_id = t.user_id
where t.digest = $1 and t.revoked_at is null and u.deactivated_at is null
