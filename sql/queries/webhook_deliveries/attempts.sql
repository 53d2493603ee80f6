select attempt, begun_at, ended_at, duration_ms, reason, status, message, host(address) as address, answer
from webhook_attempts
where tenant_id = $1 and delivery_id = $2
order by attempt
limit 1000
