-- Of the children of a run in the slots from $3 to $4: those that it has not seen, the slot after the last one that has begun,
-- and whether one has failed or was cancelled. Reads none that it has seen, however many these are.
select b.next_slot, b.has_failed, c.slot, c.child_run_id, c.state, c.calls, c.cost_usd::float8 as cost_usd,
  c.prompt_tokens, c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens
from (
  select coalesce((
      select n.slot + 1 from run_children n
      where n.tenant_id = $1 and n.parent_run_id = $2 and n.slot >= $3 and n.slot < $4 order by n.slot desc limit 1
    ), $3) as next_slot,
    exists (
      select from run_children f
      where f.tenant_id = $1 and f.parent_run_id = $2 and f.slot >= $3 and f.slot < $4 and f.state in ('failed', 'cancelled')
    ) as has_failed
) b
left join run_children c on c.tenant_id = $1 and c.parent_run_id = $2 and c.slot >= $3 and c.slot < $4 and not c.seen
order by c.slot
