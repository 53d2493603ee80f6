select input, output from run_payloads where tenant_id = $1 and run_id = $2
