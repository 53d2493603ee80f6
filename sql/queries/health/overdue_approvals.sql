-- Approvals that wait beyond their time, and whose run has no job that will see to it.
select a.tenant_id, a.approval_id
from approvals a
left join runs r on r.tenant_id = a.tenant_id and r.run_id = a.run_id
left join job_jobs j on j.id = r.job_id
where a.status = 'waiting' and a.expires_at < clock_timestamp() - $2::bigint * interval '1 millisecond'
  and (j.id is null or j.lease_id is null and j.run_at > clock_timestamp() + $2::bigint * interval '1 millisecond')
limit $1
