select model_call_give_back(of_tenant_id => $1, of_model_provider_id => $2, of_run_id => $3, of_epoch => $4, at_once => $5, at => $6)
