select step, failures from run_steps where tenant_id = $1 and run_id = $2 and status = 'running' order by step desc limit 1
