insert into conversations (tenant_id, conversation_id, project_id, agent_id, version, title, created_by, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
