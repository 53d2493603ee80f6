-- As runs/list_label, of the projects that the reader has a way into.
select one.*
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select r.*
  from run_labels l
  cross join lateral (select * from run_rows where tenant_id = $1 and run_id = l.run_id limit 1) r
  where l.tenant_id = $1 and l.key = $16 and l.value = $17 and l.project_id = way.readable_id
    and l.run_id > $3 and l.run_id < $9
    and r.labels::jsonb @> $15::json::jsonb
    and ($5::text is null or r.status = $5)
    and ($6::text is null or r.origin = $6)
    and ($7::text is null or r.flow_id = $7)
    and ($8::text is null or r.waiting_for = $8)
    and ($10::text is null or r.via = $10)
    and ($11::boolean is null or r.dry_run = $11)
    and ($12::timestamptz is null or r.created_at >= $12)
    and ($13::timestamptz is null or r.created_at < $13)
    and ($14::boolean is null or r.parent_run_id is null)
  order by l.run_id {{asc|desc}}
  limit $4
) one
order by one.run_id {{asc|desc}}
limit $4
