-- Without a project it is the tenant's.
select version, guardrails, streaming, created_by, created_at
from ((select * from policies t where t.tenant_id = $1 and $2::uuid is null and t.project_id is null order by t.version desc limit 1)
  union all
  (select * from policies o where o.tenant_id = $1 and o.project_id = $2 order by o.version desc limit 1)) p
