-- Of two that bring one code, the second finds it ended. It holds as long as its maker could mint such a key.
update enrolments e
set ended_at = $4
from users maker, tokens made_with
where e.tenant_id = $1 and e.user_id = $2 and e.digest = $3 and e.ended_at is null and e.expires_at > $4
  and maker.tenant_id = e.tenant_id and maker.user_id = e.created_by and maker.deactivated_at is null
  and (maker.tenant_role = 'admin' or not $5)
  and made_with.tenant_id = e.tenant_id and made_with.token_id = e.created_with and made_with.revoked_at is null
returning e.enrolment_id, e.key_expires_at, e.key_role as role, e.key_capabilities as capabilities,
  e.key_project_id as project_id
