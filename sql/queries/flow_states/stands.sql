-- Where a run stands, with its newest step, in one snapshot.
select r.*, f.format is not null and f.frames::text <> 'null' as has_state, f.format, f.frames, f.data, f.context, f.tasks, f.slots,
  s.step, s.path, s.started_at as step_started_at, s.completed_at as step_completed_at
from (
  select r.status, r.waiting_for, r.wake_at, r.parked_at from run_rows r where r.tenant_id = $1 and r.run_id = $2
) r
left join flow_states f on f.tenant_id = $1 and f.run_id = $2
left join lateral (
  select n.step, n.path, n.started_at, n.completed_at
  from run_steps n where n.tenant_id = $1 and n.run_id = $2 order by n.step desc limit 1
) s on true
