select exists (
  select from project_ways
  where tenant_id = $1 and project_id = $2 and via = 'direct' and role = 'owner' and user_id <> $3
)
