-- What happened to approvals after a position, of any tenant: it is passed on to the reviewers who may see it. Beside it the
-- oldest transaction that is under way, as of the same moment: what began before it is over.
select l.tenant_id, l.position, l.kind, l.at, a.approval_id, a.project_id, a.run_id, a.required_role, a.title,
  u.user_id as assigned_to, a.expires_at, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_transaction
from (select * from approval_log where position > $1 order by position limit $2) l
join approvals a on a.tenant_id = l.tenant_id and a.approval_id = l.approval_id
left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
order by l.position
