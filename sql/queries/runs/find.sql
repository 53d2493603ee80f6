select * from run_rows where tenant_id = $1 and run_id = $2
