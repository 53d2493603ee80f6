-- The ways of project_ways, each of them read no further than the page may need: who may read ten thousand projects has
-- a page of fifty.
select project_id, name, created_by, created_at, updated_at
from projects
where tenant_id = $1
  and project_id in (
    (
      select project_id from project_memberships
      where tenant_id = $1 and user_id = $2 and project_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
      order by project_id asc limit $4
    )
    union all
    (
      select project_id from project_direct_roles
      where tenant_id = $1 and user_id = $2 and project_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
      order by project_id asc limit $4
    )
    union all
    select owned.project_id
    from org_admins a
    cross join lateral (
      select project_id from projects
      where tenant_id = $1 and org_id = a.org_id and project_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
      order by project_id asc limit $4
    ) owned
    where a.tenant_id = $1 and a.user_id = $2
    union all
    select granted.project_id
    from team_memberships t
    cross join lateral (
      select project_id from team_grants
      where tenant_id = $1 and team_id = t.team_id and project_id > coalesce($3, '00000000-0000-0000-0000-000000000000'::uuid)
      order by project_id asc limit $4
    ) granted
    where t.tenant_id = $1 and t.user_id = $2
  )
  and exists (select from users where tenant_id = $1 and user_id = $2 and deactivated_at is null)
order by project_id asc
limit $4
