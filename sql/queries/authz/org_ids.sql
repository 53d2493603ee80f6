select org_id from orgs where tenant_id = $1 and org_id > $2 order by org_id limit $3
