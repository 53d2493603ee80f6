-- Kept from being deleted until the transaction ends, those that stand.
with standing as (
  select team_id from teams where tenant_id = $1 and team_id = any ($2::uuid[]) for key share
)
select named.team_id
from unnest($2::uuid[]) as named (team_id)
where named.team_id not in (select team_id from standing)
limit 1
