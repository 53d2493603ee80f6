-- For how many milliseconds an attempt at the endpoint may still be in flight; 0: none is. Those that a process of the
-- version before began say so themselves.
select coalesce(max(greatest(j.left_ms, o.left_ms)), 0)
from webhook_deliveries d
  cross join lateral job_standing(d.job_id) j
  left join lateral (
    select (extract(epoch from a.ends_by - clock_timestamp()) * 1000)::bigint as left_ms
    from webhook_attempts a
    where a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.attempt = d.attempts + 1 and a.ended_at is null
      and a.ends_by > clock_timestamp()
  ) o on true
where d.tenant_id = $1 and d.endpoint_id = $2 and d.state = 'being-sent'
