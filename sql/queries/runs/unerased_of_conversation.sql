select run_id
from runs
where tenant_id = $1 and conversation_id = $2 and payload_erased_at is null and run_id > $3
order by run_id
limit $4
