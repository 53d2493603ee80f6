select policies_of(of_tenant_id => $1, of_project_id => $2) as standing
