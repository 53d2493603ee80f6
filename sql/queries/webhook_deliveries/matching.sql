-- The endpoints that are told of an event: the rules of specification section 6.3. $4 and $5 concern runs alone.
select e.endpoint_id, coalesce(c.last_delivered_at is not null and not (c.is_failing or c.is_slow), false)
from webhook_endpoints e left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
where e.tenant_id = $1 and e.unregistered_at is null and $2 = any (e.events)
  and (e.project_id is null or e.project_id = $3)
  and ($2 <> 'run.finished' or not e.has_filter
    or ((e.flow_ids is null or $4 = any (e.flow_ids)) and (not $5 or e.include_dry_runs is true)))
order by e.endpoint_id
