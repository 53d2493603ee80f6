-- What webhooks are told of an approval: nothing of what it is about.
select approval_id, project_id, required_role, title, assigned_to, created_at, expires_at
from approvals
where tenant_id = $1 and approval_id = $2
