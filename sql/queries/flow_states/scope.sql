-- Of a run below another: the branch that it is, the run of the flow that this is a part of, and how many flows are nested.
with recursive up as (
  select r.tenant_id, r.run_id, r.parent_run_id, r.branch, r.started_at, r.created_at, 0 as level
  from runs r where r.tenant_id = $1 and r.run_id = $2
  union all
  select r.tenant_id, r.run_id, r.parent_run_id, r.branch, r.started_at, r.created_at, u.level + 1
  from up u join runs r on r.tenant_id = u.tenant_id and r.run_id = u.parent_run_id
)
select (select u.branch from up u where u.level = 0) as branch,
  (select count(*) from up u where u.branch is null) as flows,
  o.run_id, coalesce(o.started_at, o.created_at) as started_at,
  (select p.input from run_payloads p where p.tenant_id = o.tenant_id and p.run_id = o.run_id) as input
from up o where o.branch is null order by o.level limit 1
