select exists (
  select from run_payloads p join runs r on r.tenant_id = p.tenant_id and r.run_id = p.run_id
  where p.run_id < $1 and r.parent_run_id is null and r.completed_at < $2
)
