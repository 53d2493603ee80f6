-- A run that has not ended has a job of the queue of runs, and one that has ended has none.
select count(*) from (
  select from job_jobs where queue = 'runs' and fairness_key = $1::uuid::text limit $2) j
