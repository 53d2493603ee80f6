-- What lists show of runs in addition to their rows: the number of their children, and which branch of their parent they are.
select r.run_id, r.branch,
  (select count(*) from run_children c where c.tenant_id = $1 and c.parent_run_id = r.run_id) as child_count
from runs r
where r.tenant_id = $1 and r.run_id = any ($2::uuid[])
