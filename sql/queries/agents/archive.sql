-- Archives it, or with $3 false brings it back. One that stands so already stays as it is.
update agents
set updated_at = case when (archived_at is not null) = $3 then updated_at else $4 end,
  archived_at = case when $3 then coalesce(archived_at, $4) end
where tenant_id = $1 and agent_id = $2
returning agent_id, project_id, name, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
