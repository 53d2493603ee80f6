select team_id, name, slug, description, created_by, created_at, updated_at
from teams
where tenant_id = $1 and team_id = $2
