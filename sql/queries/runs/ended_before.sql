-- By their payloads, of which those that were erased are gone. Rows that another replica erases are left to it.
select r.run_id
from run_payloads p
join runs r on r.tenant_id = p.tenant_id and r.run_id = p.run_id
where p.tenant_id = $1 and p.run_id < $2 and p.run_id > $4 and r.parent_run_id is null and r.completed_at < $3
  and not exists (
    select from runs b
    where b.tenant_id = $1 and b.root_run_id = r.run_id and b.parent_run_id is not null and b.completed_at is null)
order by p.run_id
limit $5
for no key update of r skip locked
