-- For how many milliseconds an attempt at the endpoint may still be in flight; 0: none is.
select coalesce(extract(epoch from max(ends_by) - clock_timestamp()) * 1000, 0)::bigint
from webhook_attempts
where tenant_id = $1 and endpoint_id = $2 and ended_at is null and ends_by > clock_timestamp()
