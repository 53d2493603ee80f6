-- Of the root $2 of a tree of runs: what runs, and how it was started.
select r.flow_id, p.options
from runs r join run_payloads p on p.tenant_id = r.tenant_id and p.run_id = r.run_id
where r.tenant_id = $1 and r.run_id = $2
