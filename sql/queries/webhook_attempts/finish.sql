select place from webhook_finish_attempts(of_tenant_ids => $1, of_endpoint_ids => $2, of_delivery_ids => $3, of_attempts => $4,
  of_job_ids => $5, of_lease_ids => $6, ago_ms => $7, durations_ms => $8, are_slow => $9, reasons => $10, statuses => $11,
  messages => $12, addresses => $13, answers => $14, states => $15, next_job_ids => $16, waits_ms => $17) as e (place)
