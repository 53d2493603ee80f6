with made as (
  insert into webhook_endpoints (tenant_id, endpoint_id, url, events, secret_environment, secret_name, has_filter,
    flow_ids, project_id, include_dry_runs, created_by, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
)
insert into webhook_endpoint_counts (tenant_id, endpoint_id)
values ($1, $2)
