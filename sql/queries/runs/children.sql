-- The children of a run in the slots from $3 to $4. What they answered, and why they failed, is read where $5 asks for it: of the
-- first of them, as far as they have $6 bytes together.
select c.slot, c.child_run_id, c.path, c.state, c.seen, c.calls, c.cost_usd, c.prompt_tokens, c.completion_tokens,
  c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens, c.is_erased,
  case when c.bytes <= $6 then c.failure_message end as failure_message,
  case when c.bytes <= $6 then c.error end as error,
  case when c.bytes <= $6 then c.output end as output, $5 and c.bytes > $6 as is_left_out
from (
  select a.*, sum(coalesce(octet_length(a.output::text), 0) + coalesce(octet_length(a.error::text), 0)
    + coalesce(octet_length(a.failure_message), 0)) over (order by a.slot) as bytes
  from (
    select c.slot, c.child_run_id, c.path, c.state, c.seen, c.calls, c.cost_usd::float8 as cost_usd, c.prompt_tokens,
      c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens,
      r.payload_erased_at is not null as is_erased,
      case when $5 then r.failure_message end as failure_message,
      case when $5 then
        (select p.output from run_payloads p where p.tenant_id = c.tenant_id and p.run_id = c.child_run_id)
      end as output,
      case when $5 and c.state = 'failed' then
        (select s.error from flow_states s where s.tenant_id = c.tenant_id and s.run_id = c.child_run_id)
      end as error
    from run_children c
    join runs r on r.tenant_id = c.tenant_id and r.run_id = c.child_run_id
    where c.tenant_id = $1 and c.parent_run_id = $2 and c.slot >= $3 and c.slot < $4
  ) a
) c
order by c.slot
