-- Roles for which approvals wait that nobody may decide: no active person has the role and started neither the run nor one
-- that it retries.
select a.tenant_id, a.required_role, count(*) as waiting
from approvals a
where a.status = 'waiting' and a.expires_at > clock_timestamp() and not exists (
  select from reviewers v
  join users u on u.tenant_id = v.tenant_id and u.user_id = v.user_id and u.deactivated_at is null
  where v.tenant_id = a.tenant_id and v.role = a.required_role
    and v.user_id <> all (run_starters(of_tenant_id => a.tenant_id, of_run_id => a.root_run_id) || a.requested_by)
)
group by a.tenant_id, a.required_role
order by waiting desc, a.tenant_id, a.required_role
limit $1
