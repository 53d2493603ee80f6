select d.delivery_id, d.endpoint_id, d.event_id, d.type as kind, d.run_id, d.resends, d.resent_as, d.state, d.attempts,
  case when d.job_id is null or coalesce((job_standing(p_id => d.job_id)).left_ms, 0) = 0 then d.next_attempt_at end as next_attempt_at,
  d.last_error, d.last_status, d.created_at, d.ended_at,
  case when d.type = 'run.finished' then e.body::jsonb #>> '{data,run,status}' end as run_status,
  e.body
from webhook_deliveries d
left join webhook_events e on e.tenant_id = d.tenant_id and e.event_id = d.event_id
where d.tenant_id = $1 and d.endpoint_id = $2 and d.delivery_id = $3
