select run_events_beside(of_tenant_id => $1, of_run_id => $2, counted => $3, until => null)
