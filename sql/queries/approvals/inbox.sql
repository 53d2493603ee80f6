-- What waits for a reviewer: first what is assigned to this one, then what is assigned to nobody, what expires first leading.
-- Assigned to nobody is also what is assigned to somebody who was deactivated, or who has lost the role.
-- A text says where a row stands, so that a page goes on after one that has changed or is gone.
select a.approval_id, a.project_id, a.title, a.created_at, a.expires_at, u.user_id is not null as is_assigned, p.place
from approvals a
left join users u on u.tenant_id = a.tenant_id and u.user_id = a.assigned_to and u.deactivated_at is null
  and ($2::text[] is null or exists (
    select from reviewers v where v.tenant_id = a.tenant_id and v.user_id = a.assigned_to and v.role = a.required_role
  ))
cross join lateral (
  select (case when u.user_id is null then '2' else '1' end
    || to_char(a.expires_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS')) collate "C"
) p (place)
where a.tenant_id = $1
  and ($2::text[] is null or a.required_role = any ($2))
  and ($3::uuid is null or a.project_id = $3)
  and (u.user_id is null or u.user_id = $4)
  and a.status = 'waiting' and a.expires_at > clock_timestamp()
  and ($5::text is null or (p.place, a.approval_id) > ($5, $6::uuid))
order by p.place, a.approval_id
limit $7
