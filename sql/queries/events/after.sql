-- A page ends after $4 events, or with the one that takes it past $5 bytes: one event is read after another, so
-- that what does not fit is never unpacked. `more` says whether any follows.
with recursive page as (
  (select seq, kind, data, created_at, 1::bigint as number, octet_length(data::text)::bigint as bytes
    from run_events where tenant_id = $1 and run_id = $2 and seq > $3 order by seq limit 1)
  union all
  select e.seq, e.kind, e.data, e.created_at, page.number + 1, page.bytes + octet_length(e.data::text)
  from page cross join lateral (
    select seq, kind, data, created_at from run_events
    where tenant_id = $1 and run_id = $2 and seq > page.seq order by seq limit 1
  ) e
  where page.number < $4::bigint and page.bytes < $5::bigint
)
select seq, kind, data, created_at, exists (
  select from run_events
  where tenant_id = $1 and run_id = $2 and seq > (select max(page.seq) from page)
) as more
from page order by seq
