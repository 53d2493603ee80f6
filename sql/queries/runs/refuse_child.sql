select run_refuse_child(of_tenant_id => $1, of_parent_run_id => $2, of_slot => $3, of_run_id => $4, at => $5,
  failure_said => $6, failed_with => $7, kind => $8, data => $9)
