select exists (
  select from sessions s
  join users u on u.tenant_id = s.tenant_id and u.user_id = s.user_id
  join identity_providers p on p.tenant_id = s.tenant_id and p.identity_provider_id = s.identity_provider_id
  where s.tenant_id = $1 and s.created_at > $2
    and u.tenant_role = 'admin' and u.deactivated_at is null
    and p.retired_at is null and p.managed_by = $3
)
