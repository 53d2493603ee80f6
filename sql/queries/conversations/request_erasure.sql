update conversations set erasure_requested_at = $3, title = ''
where tenant_id = $1 and conversation_id = $2
returning conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
