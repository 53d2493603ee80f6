-- The movements of a run cost what they do. They are functions that keep their plans, each part a statement of its own that
-- is left out where a movement does not have it: as one statement they paid for every part, every time. And what Postgres
-- checked again at every row is left to what guarantees it already:
--
-- - CHECK constraints are read from the catalog and compiled anew by every statement that writes a row: a quarter of what
--   a movement cost. The words are those of the program's types, which are the only writers; the numbers are counted
--   here; that a run that has finished says when, and one that failed why, is the work of the functions that end runs.
-- - Foreign keys of a run lock the rows that it points to, the same few for all runs of an agent, and write the lock to
--   them. No statement deletes a project, a user, an agent's version or a conversation, and each is read in the
--   tenant before a run is made for it.

do $$
declare
  of_table text;
  name text;
begin
  for of_table, name in
    select conrelid::regclass, conname from pg_constraint
    where contype in ('c', 'f') and conislocal and conrelid::regclass::text in ('runs', 'run_steps', 'run_model_calls', 'run_events')
  loop
    execute format('alter table %s drop constraint %I', of_table, name);
  end loop;
end $$;

-- One movement of a run that is held: the fence, the usage, the step that ended, the step that begins, the events, and the
-- end with all that follows from it. Once a cancel was asked for the only movement is an end of that kind, and before it
-- none is. False: that, or the lease is lost, or this was written before. The last is seen in the run's row itself, by the
-- number of its events (`told`, without the one of a cancel): a statement that waits for that row sees it anew.
create function run_write(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, told bigint, at timestamptz, to_status text,
  kinds text[], datas jsonb[], call_ended jsonb,
  ended_step integer, ended_status text, ended_result jsonb, ended_failures integer,
  begun_step integer, begun_kind text, begun_name text, begun_attempt integer, begun_failures integer, begun_request jsonb,
  failure text, output_given jsonb, message_said text
) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  ends boolean := to_status in ('completed', 'failed', 'cancelled');
  call run_model_calls;
  of_conversation_id uuid;
  said_position bigint;
begin
  if call_ended is not null then
    call := jsonb_populate_record(null::run_model_calls, call_ended);
    call.cost_usd := model_call_cost(call.prompt_tokens, call.completion_tokens, call.cache_read_tokens,
      call.cache_write_tokens, call.reasoning_tokens, call.prompt_price, call.completion_price, call.cache_read_price,
      call.cache_write_price, call.reasoning_price);
  end if;
  update runs r set
    status = to_status,
    last_seq = r.last_seq + cardinality(kinds),
    failure_message = failure,
    completed_at = case when ends then at end,
    job_id = case when not ends then r.job_id end,
    calls = r.calls + case when call_ended is null then 0 else 1 end,
    cost_usd = r.cost_usd + coalesce(call.cost_usd, 0),
    prompt_tokens = r.prompt_tokens + coalesce(call.prompt_tokens, 0),
    completion_tokens = r.completion_tokens + coalesce(call.completion_tokens, 0),
    cache_read_tokens = r.cache_read_tokens + coalesce(call.cache_read_tokens, 0),
    cache_write_tokens = r.cache_write_tokens + coalesce(call.cache_write_tokens, 0),
    reasoning_tokens = r.reasoning_tokens + coalesce(call.reasoning_tokens, 0)
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
    and (r.cancel_requested_at is not null) = (to_status = 'cancelled')
    and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = told
  returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, told;
  if not found then
    return false;
  end if;
  if ended_step is not null then
    update run_steps s set status = ended_status, result = ended_result, failures = ended_failures, completed_at = at
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = ended_step;
  end if;
  if call_ended is not null then
    insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, failure,
      prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
      prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost_usd,
      started_at, completed_at)
    values (of_tenant_id, of_run_id, call.step, call.attempt, call.model_provider_id, call.model, call.outcome,
      call.failure, call.prompt_tokens, call.completion_tokens, call.cache_read_tokens, call.cache_write_tokens,
      call.reasoning_tokens, call.prompt_price, call.completion_price, call.cache_read_price, call.cache_write_price,
      call.reasoning_price, call.cost_usd, call.started_at, at);
  end if;
  if call_ended is not null or ends then
    delete from run_deltas d where d.tenant_id = of_tenant_id and d.run_id = of_run_id;
  end if;
  if begun_attempt = 1 then
    insert into run_steps (tenant_id, run_id, step, kind, name, status, attempt, failures, request, started_at)
    values (of_tenant_id, of_run_id, begun_step, begun_kind, begun_name, 'running', 1, begun_failures, begun_request, at);
  elsif begun_attempt > 1 then
    update run_steps s set status = 'running', attempt = begun_attempt, failures = begun_failures, started_at = at,
      completed_at = null
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = begun_step;
  end if;
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select of_tenant_id, of_run_id, told + e.n, e.kind, e.data, at
  from unnest(kinds, datas) with ordinality e (kind, data, n);
  if output_given is not null then
    update run_payloads p set output = output_given where p.tenant_id = of_tenant_id and p.run_id = of_run_id;
  end if;
  if ends and of_conversation_id is not null then
    update conversations c set active_run_id = null,
      last_position = c.last_position + case when message_said is null then 0 else 1 end
    where c.tenant_id = of_tenant_id and c.conversation_id = of_conversation_id and c.active_run_id = of_run_id
    returning c.last_position into said_position;
    if found and message_said is not null then
      insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
      values (of_tenant_id, of_conversation_id, said_position, 'assistant', message_said, of_run_id, at);
    end if;
  end if;
  return true;
end
$$;
