-- The secret that was named until now signs beside the new one for a day.
update webhook_endpoints
set url = $3, events = $4, secret_environment = $5, secret_name = $6, has_filter = $7, flow_ids = $8,
  project_id = $9, include_dry_runs = $10, updated_at = $11::timestamptz,
  previous_environment = case when (secret_environment, secret_name) = ($5, $6) then previous_environment
    else secret_environment end,
  previous_name = case when (secret_environment, secret_name) = ($5, $6) then previous_name else secret_name end,
  previous_until = case when (secret_environment, secret_name) = ($5, $6) then previous_until
    else $11::timestamptz + interval '24 hours' end
where tenant_id = $1 and endpoint_id = $2 and unregistered_at is null
