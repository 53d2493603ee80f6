insert into agents (tenant_id, agent_id, project_id, name, description, created_by, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $7)
returning agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
