select became, ended from run_cancel(of_tenant_id => $1, of_run_id => $2, at => $3, most => $4)
