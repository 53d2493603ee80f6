-- Runs that have not ended, by their jobs: a run that has not ended has a job of the queue of runs, and one that has ended has
-- none. Of the projects that the reader $17 has a way into, if one is given. The `limit 1` keeps the planner from reading all
-- runs to join them.
select r.*
from (
  select distinct (j.payload ->> 'runId')::uuid as unfinished_id
  from job_jobs j
  where j.queue = 'runs' and j.fairness_key = $1::uuid::text
) unfinished
cross join lateral (select * from run_rows where tenant_id = $1 and run_id = unfinished.unfinished_id limit 1) r
where unfinished.unfinished_id > $7 and unfinished.unfinished_id < $11
  and ($2::uuid is null or r.project_id = $2)
  and ($17::uuid is null
    or r.project_id in (select w.project_id from project_ways w where w.tenant_id = $1 and w.user_id = $17))
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
order by r.run_id {{asc|desc}}
limit $8
