select run_has_many_below(of_tenant_id => $1, of_run_id => $2, most => $3) as has_many
