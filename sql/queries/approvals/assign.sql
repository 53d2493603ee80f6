-- Assigns an approval that waits, or takes it from everybody. Where roles are asked for, to one who has the role.
with assigned as (
  update approvals a set assigned_to = $3
  where a.tenant_id = $1 and a.approval_id = $2 and a.status = 'waiting' and a.expires_at > clock_timestamp()
    and ($3::uuid is null or not $6 or exists (
      select from reviewers v where v.tenant_id = $1 and v.user_id = $3 and v.role = a.required_role
    ))
  returning a.approval_id
)
insert into approval_log (tenant_id, approval_id, kind, user_id, token_id, at)
select $1, approval_id, 'assigned', $4, $5, clock_timestamp() from assigned
