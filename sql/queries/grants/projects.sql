with page as (
  select distinct project_id
  from project_ways
  where tenant_id = $1
    and user_id = $2
    and ($3::uuid is null or project_id = $3)
    and ($4::uuid is null or project_id > $4)
  order by project_id
  limit $5
)
select p.project_id, p.name, w.via, w.joined_at, w.team_id, t.name as team_name,
  -- As it is stored: an older `member` reads back as one.
  coalesce(m.role, w.role) as role
from page
join projects p on p.tenant_id = $1 and p.project_id = page.project_id
join project_ways w on w.tenant_id = $1 and w.user_id = $2 and w.project_id = page.project_id
left join project_memberships m on w.via = 'direct' and w.joined_at is not null
  and m.tenant_id = $1 and m.project_id = w.project_id and m.user_id = $2
left join teams t on t.tenant_id = $1 and t.team_id = w.team_id
order by p.project_id, w.via, w.team_id
