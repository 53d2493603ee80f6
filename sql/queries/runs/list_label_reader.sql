-- As runs/list_label, of the projects that the reader has a way into.
select one.*
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select r.*
  from run_labels l
  cross join lateral (select * from run_rows where tenant_id = $1 and run_id = l.run_id limit 1) r
  where l.tenant_id = $1 and l.key = $10 and l.value = $11 and l.project_id = way.readable_id
    and l.run_id {{>|<}} coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
    and r.labels::jsonb @> $9::json::jsonb
    and ($5::text is null or r.status = $5)
    and ($6::text is null or r.origin = $6)
    and ($7::text is null or r.flow_id = $7)
    and ($8::text is null or r.waiting_for = $8)
  order by l.run_id {{asc|desc}}
  limit $4
) one
order by one.run_id {{asc|desc}}
limit $4
