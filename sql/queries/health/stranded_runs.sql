-- Runs under way that nothing will carry on. Every run that has not finished has a job; that of a run whose children have
-- all ended, or one of whose children has ended unseen, or none of whose approvals waits any more, or that was asked to
-- cancel while it waits, is due or taken.
select r.tenant_id, r.run_id
from runs r left join job_jobs j on j.id = r.job_id
where r.completed_at is null and (
  j.id is null
  or r.status = 'waiting' and j.lease_id is null and j.run_at > clock_timestamp() + $2::bigint * interval '1 millisecond' and (
    r.cancel_requested_at is not null
    or r.waiting_for = 'approval' and not exists (
      select from approvals a where a.tenant_id = r.tenant_id and a.run_id = r.run_id and a.status = 'waiting'
    )
    or r.waiting_for = 'children' and (
      exists (
        select from run_children c
        where c.tenant_id = r.tenant_id and c.parent_run_id = r.run_id and c.state <> 'started' and not c.seen
      ) or not exists (
        select from run_children c
        where c.tenant_id = r.tenant_id and c.parent_run_id = r.run_id and c.state = 'started' and not c.seen
      ))))
limit $1
