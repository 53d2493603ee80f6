-- Registered endpoints, of all tenants, with no success for so many milliseconds and a delivery that has failed for as long.
-- A success ends it, and so does the end of the last such delivery.
select count(*)
from webhook_endpoint_counts c
join webhook_endpoints e on e.tenant_id = c.tenant_id and e.endpoint_id = c.endpoint_id
cross join lateral (select clock_timestamp() - $1::bigint * interval '1 millisecond' as before) t
where c.is_failing and e.unregistered_at is null and coalesce(c.last_delivered_at < t.before, true) and exists (
  select from webhook_deliveries d
  where d.tenant_id = c.tenant_id and d.endpoint_id = c.endpoint_id and d.state = 'being-sent' and d.attempts > 0
    and d.created_at < t.before)
