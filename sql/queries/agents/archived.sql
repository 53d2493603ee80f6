-- What starts nothing: the project, or the agent or the flow in it.
select
  exists (select from projects where tenant_id = $1 and project_id = $2 and archived_at is not null) as is_project_archived,
  exists (select from agents where tenant_id = $1 and agent_id = $3 and archived_at is not null) as is_agent_archived,
  (select id from flows where tenant_id = $1 and project_id = $2 and flow_id = $4 and archived_at is not null) as archived_flow
