-- The newest approval of each step of a run from this one on: the others of a step were escalated.
select a.step, a.approval_id, a.status, a.decided_by, a.comment, a.escalate_role, a.escalate_assignee, s.answer, s.arguments,
  s.edited_arguments,
  ceil(extract(epoch from a.expires_at - clock_timestamp()) * 1000)::bigint as expires_in_ms,
  ceil(extract(epoch from a.escalate_at - clock_timestamp()) * 1000)::bigint as escalates_in_ms
from approvals a
left join approval_subjects s on s.tenant_id = a.tenant_id and s.approval_id = a.approval_id
where a.tenant_id = $1 and a.run_id = $2 and a.step >= $3 and a.status <> 'escalated'
