select one.*
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from run_rows
  where tenant_id = $1 and project_id = way.readable_id
    and run_id {{>|<}} coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
    and ($5::text is null or status = $5)
    and ($6::text is null or origin = $6)
    and ($7::text is null or flow_id = $7)
    and ($8::text is null or waiting_for = $8)
  order by run_id {{asc|desc}}
  limit $4
) one
order by one.run_id {{asc|desc}}
limit $4
