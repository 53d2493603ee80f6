-- A delivery that waits under this very job, locked: whether its event is kept, for how many milliseconds its next attempt
-- has been due, and one that a process of the version before began and left open: for how long it may still be in flight.
select d.attempts, v.event_id is not null,
  greatest(0, extract(epoch from clock_timestamp() - coalesce(d.next_attempt_at, d.created_at)) * 1000)::bigint,
  a.attempt is not null, coalesce(greatest(0, extract(epoch from a.ends_by - clock_timestamp()) * 1000), 0)::bigint
from webhook_deliveries d
  left join webhook_events v on v.tenant_id = d.tenant_id and v.event_id = d.event_id
  left join webhook_attempts a on a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id
    and a.attempt = d.attempts + 1 and a.ended_at is null
where d.tenant_id = $1 and d.delivery_id = $2 and d.state = 'being-sent' and d.job_id = $3
for update of d
