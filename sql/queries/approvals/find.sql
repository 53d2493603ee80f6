-- An approval whose time is over is shown as expired, also before anybody has written that. One that is assigned to somebody
-- who was deactivated is shown as nobody's.
select a.approval_id, a.project_id, a.run_id, a.root_run_id, a.source, a.path, a.required_role, a.title,
  case when a.status = 'waiting' and a.expires_at <= clock_timestamp() then 'expired' else a.status end as status,
  a.requested_by, run_starters(of_tenant_id => a.tenant_id, of_run_id => a.root_run_id) as starters,
  u.user_id as assigned_to, a.created_at, a.expires_at, a.escalate_at, a.escalate_role, a.escalate_assignee, a.escalated_from,
  a.escalated_to, a.subject_digest, a.decided_by, a.comment,
  case when a.status = 'waiting' and a.expires_at <= clock_timestamp() then a.expires_at else a.closed_at end as closed_at
from approvals a
left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
where a.tenant_id = $1 and a.approval_id = $2
