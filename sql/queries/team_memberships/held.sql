select team_id, role, source_provider_id
from team_memberships
where tenant_id = $1 and user_id = $2 and (team_id = any ($3::uuid[]) or source_provider_id = $4)
order by team_id
