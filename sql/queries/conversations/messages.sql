-- A page ends after $4 messages, or with the one that takes it past $5 bytes. `more` says whether any follows.
select position, role, content, run_id, created_at, more
from (
  select position, role, content, run_id, created_at,
    lead(position) over in_order is not null as more,
    row_number() over in_order as number,
    sum(octet_length(content)) over in_order - octet_length(content) as bytes_before
  from (
    select position, role, content, run_id, created_at
    from conversation_messages
    where tenant_id = $1 and conversation_id = $2
      and ($3::bigint is null or position {{>|<}} $3)
    order by position {{asc|desc}}
    limit $4::bigint + 1
  ) fetched
  window in_order as (order by position {{asc|desc}})
) page
where number <= $4 and bytes_before <= $5
order by position {{asc|desc}}
