select exists (
  select from project_ways where tenant_id = $1 and project_id = $2 and user_id = $3
)
