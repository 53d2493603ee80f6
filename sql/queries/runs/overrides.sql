select options -> 'overrides' as overrides from run_payloads where tenant_id = $1 and run_id = $2
