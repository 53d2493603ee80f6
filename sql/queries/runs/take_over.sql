-- Of a failed run $2, what the run $3 takes over that takes it up, beside the steps that are done: of a flow where it stands,
-- the step that waits for child runs, and those of these that completed, or whose failure is an answer too ($15). What they used
-- is the failed run's.
with state as (
  insert into flow_states (tenant_id, run_id, format, frames, data, context, tasks, slots)
  select $1, $3, $5, $6, $7, $8, $9, $10 where $5::smallint is not null
), step as (
  insert into run_steps (tenant_id, run_id, step, kind, name, path, status, attempt, failures, request, started_at, format)
  select $1, $3, s.step, s.kind, s.name, s.path, 'running', s.attempt, 0, $12, $4, s.format
  from run_steps s where s.tenant_id = $1 and s.run_id = $2 and s.step = $11
)
insert into run_children (tenant_id, parent_run_id, slot, child_run_id, path, state, seen, calls, cost_usd, prompt_tokens,
  completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
select $1, $3, c.slot, c.child_run_id, c.path, c.state, true, c.calls, c.cost_usd, c.prompt_tokens,
  c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens
from run_children c
where c.tenant_id = $1 and c.parent_run_id = $2 and c.slot >= $13 and c.slot < $14
  and (c.state = 'completed' or $15 and c.state = 'failed')
