select team_id, name, slug, description, created_by, created_at, updated_at
from teams
where tenant_id = $1
  and ($2::uuid is null or team_id {{>|<}} $2)
order by team_id {{asc|desc}}
limit $3
