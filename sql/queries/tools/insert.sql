insert into tools (tenant_id, tool_id, project_id, name, description, arguments_schema, url, timeout_ms,
  idempotent, secret_headers, signing_secret, approval, target, agent_id, agent_version, flow_id, flow_version, dry_run, created_by,
  created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
returning tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent, secret_headers, signing_secret,
  approval, target, agent_id, agent_version, flow_id, flow_version, dry_run, created_by, created_at
