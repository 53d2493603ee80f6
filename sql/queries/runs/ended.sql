select r.*, coalesce(
    (select max(s.step) from run_steps s where s.tenant_id = r.tenant_id and s.run_id = r.run_id), 0) as steps
from run_rows r
where r.tenant_id = $1 and r.run_id = any ($2)
