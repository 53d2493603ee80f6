select team_id from teams
where tenant_id = $1 and team_id = any ($2::uuid[])
order by team_id
for no key update
