insert into sign_in_settings (tenant_id, token_sign_in, session_idle_minutes, session_hours, changed_by, changed_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (tenant_id) do update
set token_sign_in = excluded.token_sign_in, session_idle_minutes = excluded.session_idle_minutes,
  session_hours = excluded.session_hours, changed_by = excluded.changed_by, changed_at = excluded.changed_at
