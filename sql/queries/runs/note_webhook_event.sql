update run_payloads set webhook_event_id = $3 where tenant_id = $1 and run_id = $2
