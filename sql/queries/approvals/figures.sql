-- What waits in all tenants, for the operator's metrics. One whose time is over is closed when its run goes on.
select count(*) filter (where w.is_current and w.required_role = 'standard') as standard,
  count(*) filter (where w.is_current and w.required_role <> 'standard') as other,
  count(*) filter (where not w.is_current) as overdue,
  coalesce(extract(epoch from clock_timestamp() - min(w.created_at) filter (where w.is_current)), 0)::float8 as oldest_seconds
from (
  select required_role, created_at, expires_at > clock_timestamp() as is_current from approvals where status = 'waiting'
) w
