select webhook_emit(of_tenant_id => $1, of_type => $2, of_project_id => $3, of_flow_id => $4, is_dry_run => $5, of_event_id => $6,
  of_body => $7, of_run_id => $8, at => $9, delivery_ids => $10, cap_well => $11, of_queue => $12, of_job_name => $13,
  of_max_attempts => $14) as matched
