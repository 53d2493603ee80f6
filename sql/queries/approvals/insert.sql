-- Opens an approval for a step of a run whose row this transaction has written. Its time runs by PostgreSQL's clock.
with run as (
  select project_id, root_run_id, created_by from runs where tenant_id = $1 and run_id = $2
), subject as (
  insert into approval_subjects (tenant_id, approval_id, run_id, context, tool, arguments, form, earlier_call)
  values ($1, $3, $2, $13, $14, $15, $18, $19)
), log as (
  insert into approval_log (tenant_id, approval_id, kind, at) values ($1, $3, 'opened', clock_timestamp())
)
insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source, required_role, title,
  status, requested_by, created_at, expires_at, escalate_at, escalate_role, subject_digest, tool_id, escalate_assignee)
select $1, $3, r.project_id, $2, r.root_run_id, $4, $5, $6, $7, $8, 'waiting', r.created_by, t.now,
  t.now + $9::bigint * interval '1 millisecond', t.now + $10::bigint * interval '1 millisecond', $11, $12, $16, $17
from run r cross join (select clock_timestamp()) t (now)
