-- No row where the project or the agent is archived.
insert into conversations (tenant_id, conversation_id, project_id, agent_id, version, title, created_by, created_at)
select $1, $2, $3, $4, $5, $6, $7, $8
where not exists (select from projects where tenant_id = $1 and project_id = $3 and archived_at is not null)
  and not exists (select from agents where tenant_id = $1 and agent_id = $4 and archived_at is not null)
returning conversation_id, project_id, agent_id, version, title, active_run_id, created_by, created_at,
  erasure_requested_at, erased_at
