-- Of two that bring one code, the second finds it ended.
update enrolments
set ended_at = $4
where tenant_id = $1 and user_id = $2 and digest = $3 and ended_at is null and expires_at > $4
returning enrolment_id, key_expires_at, key_role as role, key_capabilities as capabilities,
  key_project_id as project_id
