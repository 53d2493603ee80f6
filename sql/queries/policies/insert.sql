insert into policies (tenant_id, project_id, version, guardrails, streaming, created_by, created_at)
values ($1, $2, $3, $4, $5, $6, $7)
returning version, guardrails, streaming, created_by, created_at
