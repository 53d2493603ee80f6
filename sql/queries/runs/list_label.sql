-- The label $18, $19 leads, which is one of $17: in each project its runs are read in order, and no further than the page needs.
-- Each `limit 1` keeps the planner from reading all runs to join them.
select one.*
from projects p
cross join lateral (
  select r.*
  from run_labels l
  cross join lateral (select * from run_rows where tenant_id = $1 and run_id = l.run_id limit 1) r
  where l.tenant_id = $1 and l.key = $18 and l.value = $19 and l.project_id = p.project_id
    and l.run_id > $7 and l.run_id < $11
    and r.labels::jsonb @> $17::json::jsonb
    and ($3::uuid is null or r.agent_id = $3)
    and ($4::uuid is null or r.conversation_id = $4)
    and ($5::text is null or r.status = $5)
    and ($6::text is null or r.origin = $6)
    and ($9::text is null or r.flow_id = $9)
    and ($10::text is null or r.waiting_for = $10)
    and ($12::text is null or r.via = $12)
    and ($13::boolean is null or r.dry_run = $13)
    and ($14::timestamptz is null or r.created_at >= $14)
    and ($15::timestamptz is null or r.created_at < $15)
    and ($16::boolean is null or r.parent_run_id is null)
  order by l.run_id {{asc|desc}}
  limit $8
) one
where p.tenant_id = $1 and ($2::uuid is null or p.project_id = $2)
order by one.run_id {{asc|desc}}
limit $8
