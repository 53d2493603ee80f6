-- Of two that bring one code, the second finds it ended. It holds as long as its maker could mint such a key; one that
-- was made in a session does not end with the session, but with the token that the session came from. The operator's
-- has no maker.
update enrolments e
set ended_at = $4
where e.tenant_id = $1 and e.user_id = $2 and e.digest = $3 and e.ended_at is null and e.expires_at > $4
  and (
    e.created_by is null
    or exists (
      select from users maker
      where maker.tenant_id = e.tenant_id and maker.user_id = e.created_by and maker.deactivated_at is null
        and (maker.tenant_role = 'admin' or not $5)
    )
    and (
      exists (
        select from tokens t
        where t.tenant_id = e.tenant_id and t.token_id = e.created_with and t.revoked_at is null
      )
      or exists (
        select from sessions s
        left join tokens t on t.tenant_id = s.tenant_id and t.token_id = s.token_id
        where s.tenant_id = e.tenant_id and s.session_id = e.created_with
          and (s.token_id is null or (t.token_id is not null and t.revoked_at is null))
      )
    )
  )
returning e.enrolment_id, e.key_expires_at, e.key_role as role, e.key_capabilities as capabilities,
  e.key_project_id as project_id, e.created_by is null as is_operator_made
