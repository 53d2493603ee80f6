select one.*
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from run_rows
  where tenant_id = $1 and project_id = way.readable_id
    and run_id > $3 and run_id < $9
    and ($5::text is null or status = $5)
    and ($6::text is null or origin = $6)
    and ($7::text is null or flow_id = $7)
    and ($8::text is null or waiting_for = $8)
    and ($10::text is null or via = $10)
    and ($11::boolean is null or dry_run = $11)
    and ($12::timestamptz is null or created_at >= $12)
    and ($13::timestamptz is null or created_at < $13)
    and ($14::boolean is null or parent_run_id is null)
  order by run_id {{asc|desc}}
  limit $4
) one
order by one.run_id {{asc|desc}}
limit $4
