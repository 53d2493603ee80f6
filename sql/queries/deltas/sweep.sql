-- Text and reasoning that a process wrote after it had lost its run.
with reasoning as (
  delete from run_reasoning d using (
    select d.tenant_id, d.run_id from run_reasoning d join runs r on r.tenant_id = d.tenant_id and r.run_id = d.run_id
    where r.completed_at is not null limit $1) left_over
  where d.tenant_id = left_over.tenant_id and d.run_id = left_over.run_id
)
delete from run_deltas d using (
  select d.tenant_id, d.run_id from run_deltas d join runs r on r.tenant_id = d.tenant_id and r.run_id = d.run_id
  where r.completed_at is not null limit $1) left_over
where d.tenant_id = left_over.tenant_id and d.run_id = left_over.run_id
