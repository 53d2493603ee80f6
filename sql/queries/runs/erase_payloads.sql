select run_erase_payloads(of_tenant_id => $1, root_ids => $2, at => $3)
