-- The steps of a run for which an approval was opened.
select coalesce(array_agg(a.step), '{}') as steps
from approvals a
where a.tenant_id = $1 and a.run_id = $2
