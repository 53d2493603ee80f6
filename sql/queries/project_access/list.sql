with ways as (
  select user_id, via, role, joined_at, team_id
  from project_ways
  where tenant_id = $1 and project_id = $2
  union
  select user_id, 'tenant-admin', 'admin', null, null
  from users
  where tenant_id = $1 and tenant_role = 'admin' and deactivated_at is null
  union
  -- A tenant admin is an admin of every team.
  select u.user_id, 'team', g.role, null, g.team_id
  from team_grants g
  join users u on u.tenant_id = g.tenant_id and u.tenant_role = 'admin' and u.deactivated_at is null
  where g.tenant_id = $1 and g.project_id = $2
), ranked as (
  select user_id,
    min(case role when 'owner' then 1 when 'admin' then 2 when 'editor' then 3 else 4 end) as rank
  from ways
  group by user_id
), placed as (
  select r.user_id, u.kind, u.display_name, u.email,
    (r.rank::text || lower(u.display_name)) collate "C" as place
  from ranked r
  join users u on u.tenant_id = $1 and u.user_id = r.user_id
), page as (
  select user_id, kind, display_name, email, place
  from placed
  where $3::text is null or (place, user_id) > ($3, $4::uuid)
  order by place, user_id
  limit $5
)
select p.user_id, p.kind, p.display_name, p.email as primary_email, p.place,
  -- As it is stored: an older `member` reads back as one.
  w.via, coalesce(m.role, w.role) as role, w.joined_at, w.team_id, t.name as team_name
from page p
join ways w on w.user_id = p.user_id
left join project_memberships m on w.via = 'direct' and w.joined_at is not null
  and m.tenant_id = $1 and m.project_id = $2 and m.user_id = p.user_id
left join teams t on t.tenant_id = $1 and t.team_id = w.team_id
order by p.place, p.user_id,
  array_position(array['direct', 'tenant-admin', 'org-admin', 'team'], w.via),
  lower(t.name) collate "C", w.team_id
