-- A delivery that waits under this very job, locked: whether its event is kept, and for how many milliseconds its next
-- attempt has been due.
select d.attempts, v.event_id is not null as has_event,
  greatest(0, extract(epoch from clock_timestamp() - coalesce(d.next_attempt_at, d.created_at)) * 1000)::bigint as due_ago_ms
from webhook_deliveries d
  left join webhook_events v on v.tenant_id = d.tenant_id and v.event_id = d.event_id
where d.tenant_id = $1 and d.delivery_id = $2 and d.state = 'being-sent' and d.job_id = $3
for update of d
