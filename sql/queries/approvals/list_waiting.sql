-- A statement of its own, so that what waits is found by its index, however much is closed.
select a.approval_id, a.project_id, a.run_id, a.root_run_id, a.source, a.path, a.required_role, a.title, a.status,
  a.requested_by, u.user_id as assigned_to, a.created_at, a.expires_at, a.escalate_at, a.escalate_role, a.escalate_assignee,
  a.escalated_from,
  a.escalated_to, a.subject_digest, a.decided_by, a.comment, a.closed_at
from approvals a
left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
where a.tenant_id = $1
  and ($2::text[] is null or a.required_role = any ($2))
  and ($3::uuid is null or a.project_id = $3)
  and ($4::uuid is null or a.run_id = $4)
  and ($5::uuid is null or u.user_id = $5)
  and (not $6 or u.user_id is null)
  and ($7::uuid is null or a.approval_id {{>|<}} $7)
  and a.status = 'waiting' and a.expires_at > clock_timestamp()
order by a.approval_id {{asc|desc}}
limit $8
