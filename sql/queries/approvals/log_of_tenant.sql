-- What happened to the approvals of a tenant between two positions: for a reviewer who comes back.
select l.tenant_id, l.position, l.kind, l.at, a.approval_id, a.project_id, a.run_id, a.required_role, a.title,
  u.user_id as assigned_to, a.expires_at, 0::bigint as oldest_transaction
from (
  select * from approval_log where tenant_id = $1 and position > $2 and position <= $3 order by position limit $4
) l
join approvals a on a.tenant_id = l.tenant_id and a.approval_id = l.approval_id
left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
order by l.position
