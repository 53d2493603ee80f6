select archived_at from projects
where tenant_id = $1 and project_id = $2
for no key update
