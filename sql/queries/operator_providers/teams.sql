select team_id, slug
from teams
where tenant_id = $1 and slug = any ($2::text[])
