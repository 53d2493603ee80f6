-- Of a run and the runs below it, those that a cancel at that time ended because nobody held them. Runs below one that
-- ended in another way were over before.
with recursive tree (run_id) as (
  select $2::uuid
  union all
  select c.child_run_id
  from tree t
  join run_children c on c.tenant_id = $1 and c.parent_run_id = t.run_id and c.state in ('started', 'cancelled')
)
select r.*, coalesce(
    (select max(s.step) from run_steps s where s.tenant_id = r.tenant_id and s.run_id = r.run_id), 0) as steps
from tree t
join run_rows r on r.tenant_id = $1 and r.run_id = t.run_id
where r.status = 'cancelled' and r.completed_at = $3
