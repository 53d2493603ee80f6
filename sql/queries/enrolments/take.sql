-- Of two that bring one code, the second finds it ended.
update enrolments e
set ended_at = $2
from users u
where e.digest = $1
  and e.ended_at is null
  and e.expires_at > $2
  and u.tenant_id = e.tenant_id
  and u.user_id = e.user_id
  and u.deactivated_at is null
returning e.tenant_id, e.user_id, u.tenant_role, e.enrolment_id
