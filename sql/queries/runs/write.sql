-- One movement of a run that is held: the fence, the usage, the step that ended, the step that begins and the
-- events, together. $5: whether it may be written although a cancel was asked for. No row: the lease is lost,
-- or a cancel was asked for and $5 is false, or this was written before. The last is seen in the run's row itself,
-- by the number of its events ($12, without the one of a cancel): a statement that waits for that row sees it anew,
-- but other tables as they were before.
with call as materialized (
  select c.*, model_call_cost(c.prompt_tokens, c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens,
    c.reasoning_tokens, c.prompt_price, c.completion_price, c.cache_read_price, c.cache_write_price,
    c.reasoning_price) as cost
  from jsonb_populate_record(null::run_model_calls, $8::jsonb) c where $8::jsonb is not null
), held as (
  update runs r set
    status = $11,
    last_seq = r.last_seq + cardinality($6::text[]),
    calls = r.calls + case when $8::jsonb is null then 0 else 1 end,
    cost_usd = r.cost_usd + coalesce(call.cost, 0),
    prompt_tokens = r.prompt_tokens + coalesce(call.prompt_tokens, 0),
    completion_tokens = r.completion_tokens + coalesce(call.completion_tokens, 0),
    cache_read_tokens = r.cache_read_tokens + coalesce(call.cache_read_tokens, 0),
    cache_write_tokens = r.cache_write_tokens + coalesce(call.cache_write_tokens, 0),
    reasoning_tokens = r.reasoning_tokens + coalesce(call.reasoning_tokens, 0)
  from (select) one left join call on true
  where r.tenant_id = $1 and r.run_id = $2 and r.lease_epoch = $3 and r.status = 'running'
    and ($5 or r.cancel_requested_at is null)
    and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = $12
  returning r.last_seq, r.cancel_requested_at is not null as cancel_requested
), counted as (
  insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, failure,
    prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
    prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost_usd,
    started_at, completed_at)
  select $1, $2, step, attempt, model_provider_id, model, outcome, failure,
    prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
    prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost, started_at, $4
  from call, held
), ended as (
  update run_steps s set status = e.status, result = e.result, failures = e.failures, completed_at = $4
  from held, jsonb_to_record($9::jsonb) e (step integer, status text, result jsonb, failures integer)
  where s.tenant_id = $1 and s.run_id = $2 and s.step = e.step
), dropped as (
  delete from run_deltas d using held
  where d.tenant_id = $1 and d.run_id = $2 and ($8::jsonb is not null)
), begun as (
  insert into run_steps as s (tenant_id, run_id, step, kind, name, status, attempt, failures, request, started_at)
  select $1, $2, b.step, b.kind, b.name, 'running', b.attempt, b.failures, b.request, $4
  from held, jsonb_to_record($10::jsonb) b (step integer, kind text, name text, attempt integer, failures integer, request jsonb)
  where $10::jsonb is not null
  on conflict (tenant_id, run_id, step) do update
    set status = 'running', attempt = excluded.attempt, failures = excluded.failures, started_at = excluded.started_at,
      completed_at = null
), told as (
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select $1, $2, held.last_seq - cardinality($6::text[]) + e.n, e.kind, e.data, $4
  from held, unnest($6::text[], $7::jsonb[]) with ordinality e (kind, data, n)
)
select last_seq, cancel_requested from held
