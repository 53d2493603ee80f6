-- One step of a run that is held under `of_epoch`: the fence, the usage, the step that ended, the step that begins, the
-- events, and the end with all that follows from it. Once a cancel was asked for, only an end of that kind is written, and
-- before it none is.
--
-- False, and nothing is written: that, or the lease is lost, or this was written before. The last is seen in the run's row
-- itself, by the number of its events (`told`, without the one of a cancel): a statement that waited for that row reads it
-- anew.
--
-- `has_text`: text of the run may stand in `run_deltas`, which is deleted.
--
-- With a job, that job is completed too; one that is not this lease's any more is the error AR001. Null, and nothing is
-- written, where `is_told` and the tenant has an endpoint for ends of runs: the caller then reports the end itself, in a
-- transaction. Where that endpoint was added meanwhile, it is the error AR002.
--
-- It takes columns instead of a document, and each part that a step lacks is skipped: as one statement a step paid for
-- every part, every time.
create function run_write(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, told bigint, at timestamptz, to_status text,
  kinds text[], datas json[],
  ended_step integer, ended_status text, ended_result json, ended_failures integer,
  begun_step integer, begun_kind text, begun_name text, begun_attempt integer, begun_failures integer, begun_request json,
  failure_said text, output_given json, message_said text, has_text boolean,
  call_step integer, call_attempt integer, call_provider_id uuid, call_model text, call_outcome text, call_failure text,
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  price_prompt numeric, price_completion numeric, price_cache_read numeric, price_cache_write numeric, price_reasoning numeric,
  call_started_at timestamptz,
  of_job_id bigint, of_lease_id bigint, is_told boolean
) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  ends boolean := to_status in ('completed', 'failed', 'cancelled');
  cost numeric;
  of_conversation_id uuid;
  said_position bigint;
begin
  if is_told and exists (
    select from webhook_endpoints e
    where e.tenant_id = of_tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    return null;
  end if;
  if call_step is not null then
    cost := model_call_cost(prompt, completion, cache_read, cache_write, reasoning,
      price_prompt, price_completion, price_cache_read, price_cache_write, price_reasoning);
    update runs r set
      status = to_status,
      last_seq = r.last_seq + cardinality(kinds),
      failure_message = failure_said,
      completed_at = case when ends then at end,
      job_id = case when not ends then r.job_id end,
      calls = r.calls + 1,
      cost_usd = r.cost_usd + coalesce(cost, 0),
      prompt_tokens = r.prompt_tokens + coalesce(prompt, 0),
      completion_tokens = r.completion_tokens + coalesce(completion, 0),
      cache_read_tokens = r.cache_read_tokens + coalesce(cache_read, 0),
      cache_write_tokens = r.cache_write_tokens + coalesce(cache_write, 0),
      reasoning_tokens = r.reasoning_tokens + coalesce(reasoning, 0)
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      and (r.cancel_requested_at is not null) = (to_status = 'cancelled')
      and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = told
    returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, told;
  else
    update runs r set
      status = to_status,
      last_seq = r.last_seq + cardinality(kinds),
      failure_message = failure_said,
      completed_at = case when ends then at end,
      job_id = case when not ends then r.job_id end
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      and (r.cancel_requested_at is not null) = (to_status = 'cancelled')
      and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = told
    returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, told;
  end if;
  if not found then
    return false;
  end if;
  if ended_step is not null then
    update run_steps s set status = ended_status, result = ended_result, failures = ended_failures, completed_at = at
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = ended_step;
  end if;
  if call_step is not null then
    insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, failure,
      prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
      prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost_usd,
      started_at, completed_at)
    values (of_tenant_id, of_run_id, call_step, call_attempt, call_provider_id, call_model, call_outcome, call_failure,
      prompt, completion, cache_read, cache_write, reasoning,
      price_prompt, price_completion, price_cache_read, price_cache_write, price_reasoning, cost, call_started_at, at);
  end if;
  if has_text then
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
  if of_job_id is not null and not job_done(of_job_id, of_lease_id) then
    raise exception 'the run''s job is another''s now' using errcode = 'AR001';
  end if;
  -- One may have been registered while this waited for a row.
  if is_told and exists (
    select from webhook_endpoints e
    where e.tenant_id = of_tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    raise exception 'somebody is to be told of the run''s end' using errcode = 'AR002';
  end if;
  return true;
end
$$;
