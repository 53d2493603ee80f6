-- Locks the run that asks (`locks-from-root-to-leaf`), as a decision and an escalation do. What was committed before is seen
-- by the statements after this one.
select a.required_role
from approvals a join runs r on r.tenant_id = a.tenant_id and r.run_id = a.run_id
where a.tenant_id = $1 and a.approval_id = $2
for no key update of r
