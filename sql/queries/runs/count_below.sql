select count(*) from (
  select from runs where tenant_id = $1 and root_run_id = $2 and parent_run_id is not null limit $3) r
