-- How much the whole inbox holds, counted no further than $5: see `inbox`.
select count(*) as approvals
from (
  select
  from approvals a
  left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
    and ($2::text[] is null or exists (
      select from reviewers v where v.tenant_id = a.tenant_id and v.user_id = a.assigned_to and v.role = a.required_role
    ))
  where a.tenant_id = $1
    and ($2::text[] is null or a.required_role = any ($2))
    and ($3::uuid is null or a.project_id = $3)
    and (u.user_id is null or u.user_id = $4)
    and a.status = 'waiting' and a.expires_at > clock_timestamp()
  limit $5
) waiting
