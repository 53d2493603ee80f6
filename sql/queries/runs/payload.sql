select p.input, p.output, p.options, r.payload_erased_at
from runs r
left join run_payloads p on p.tenant_id = $1 and p.run_id = $2
where r.tenant_id = $1 and r.run_id = $2
