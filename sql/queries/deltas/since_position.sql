-- Of any tenant: see events/moved_since. Each table alone gives as many rows as are asked for, so that its index is read in order.
select tenant_id, run_id, step, attempt, text_offset, text, position, is_reasoning from (
  (select tenant_id, run_id, step, attempt, text_offset, text, position, false as is_reasoning from run_deltas
  where position > $1 order by position limit $2)
  union all
  (select tenant_id, run_id, step, attempt, text_offset, text, position, true from run_reasoning
  where position > $1 order by position limit $2)) piece
order by position limit $2
