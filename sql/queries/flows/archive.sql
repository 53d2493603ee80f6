-- Archives it, or with $3 false brings it back. One that stands so already stays as it is.
update flows
set updated_at = case when (archived_at is not null) = $3 then updated_at else $4 end,
  archived_at = case when $3 then coalesce(archived_at, $4) end
where tenant_id = $1 and id = $2
returning id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
