select e.endpoint_id, e.url, e.events, e.secret_environment, e.secret_name,
  case when e.previous_until > now() then e.previous_environment end as previous_environment,
  case when e.previous_until > now() then e.previous_name end as previous_name,
  case when e.previous_until > now() then e.previous_until end as previous_until,
  e.has_filter, e.flow_ids, e.project_id, e.include_dry_runs, e.created_by, e.created_at, e.updated_at,
  coalesce(c.delivered, 0) as delivered, coalesce(c.failed, 0) as failed, coalesce(c.is_failing, false) as is_failing,
  c.last_delivered_at, c.last_failed_at, c.last_error, c.last_status,
  (select count(*) from (
    select 1 from webhook_deliveries d
    where d.tenant_id = e.tenant_id and d.endpoint_id = e.endpoint_id and d.state = 'being-sent'
    limit 1000) as waiting) as being_sent
from webhook_endpoints e
left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
where e.tenant_id = $1 and e.unregistered_at is null
  and ($2::uuid is null or e.endpoint_id {{>|<}} $2)
order by e.endpoint_id {{asc|desc}}
limit $3
