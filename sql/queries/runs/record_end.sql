select run_record_end(of_tenant_id => $1, of_parent_run_id => $2, of_slot => $3, of_run_id => $4)
