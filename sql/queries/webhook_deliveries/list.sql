-- Each state has its range in the index, and each range gives as many as the page may take. The events are those of the
-- page alone, whatever a plan that is kept takes a page to be.
select d.delivery_id, d.endpoint_id, d.event_id, d.type as kind, d.run_id, d.resends, d.resent_as, d.state, d.attempts,
  case when d.job_id is null or coalesce((job_standing(p_id => d.job_id)).left_ms, 0) = 0 then d.next_attempt_at end as next_attempt_at,
  d.last_error, d.last_status, d.created_at, d.ended_at,
  case when d.type = 'run.finished' then e.body::jsonb #>> '{data,run,status}' end as run_status
from (
  select d.*
  from unnest($5::text[]) s (state)
    cross join lateral (
      select d.* from webhook_deliveries d
      where d.tenant_id = $1 and d.endpoint_id = $2 and d.state = s.state
        and d.delivery_id {{>|<}} coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
      order by d.delivery_id {{asc|desc}}
      limit $4
    ) d
  order by d.delivery_id {{asc|desc}}
  limit $4
) d
left join lateral (
  select e.body from webhook_events e where e.tenant_id = d.tenant_id and e.event_id = d.event_id offset 0
) e on true
order by d.delivery_id {{asc|desc}}
