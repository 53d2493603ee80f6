-- A page ends after $4 steps, or with the one whose result takes it past $5 bytes. `more` says whether any follows.
select step, kind, name, path, format, status, attempt, result, started_at, completed_at, more
from (
  select *,
    lead(step) over in_order is not null as more,
    row_number() over in_order as number,
    sum(bytes) over in_order - bytes as bytes_before
  from (
    select step, kind, name, path, format, status, attempt, result, started_at, completed_at,
      coalesce(octet_length(result::text), 0) as bytes
    from run_steps
    where tenant_id = $1 and run_id = $2
      and ($3::bigint is null or step {{>|<}} $3)
    order by step {{asc|desc}}
    limit $4::bigint + 1
  ) fetched
  window in_order as (order by step {{asc|desc}})
) page
where number <= $4 and bytes_before <= $5
order by step {{asc|desc}}
