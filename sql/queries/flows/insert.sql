insert into flows (tenant_id, id, project_id, flow_id, title, description, created_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8)
