select exists (
  select from reviewers v join users u on u.tenant_id = v.tenant_id and u.user_id = v.user_id and u.deactivated_at is null
  where v.tenant_id = $1 and v.user_id = $2 and v.role = $3
)
