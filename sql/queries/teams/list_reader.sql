select t.team_id, t.name, t.slug, t.description, t.created_by, t.created_at, t.updated_at
from team_memberships m
join teams t on t.tenant_id = m.tenant_id and t.team_id = m.team_id
where m.tenant_id = $1 and m.user_id = $2
  and ($3::uuid is null or m.team_id {{>|<}} $3)
order by m.team_id {{asc|desc}}
limit $4
