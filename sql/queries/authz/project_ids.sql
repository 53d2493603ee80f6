select project_id from projects where tenant_id = $1 and project_id > $2 order by project_id limit $3
