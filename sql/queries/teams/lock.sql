select team_id from teams
where tenant_id = $1 and team_id = $2
for no key update
