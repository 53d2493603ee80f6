-- One commit of a run that is held: the fence, the usage, the step that ended, the step that begins, the events, a wait or
-- the end. Each commit names the number of events that the run had before it (`held.events_before`, the event of a cancel not
-- counted) and adds at least one. So a repeated commit differs from the next one. Others than the holder write three kinds of
-- events while it is held: that of a cancel, once, `approval.escalated` and `approval.unassigned`.
--
-- Says what became of it, what its model call cost, and the run's totals where it ends. All but the first have written nothing:
-- - written
-- - repeated: this holder wrote it before, and the answer was lost.
-- - cancel-asked: a cancel was asked for, after which the run takes no commit but an end of that kind. With
--   `held.root_run_id`, of a run below that root, a cancel of the root counts too: the run is marked as asked to end with it.
-- - overtaken: an event of another kind was written after `held.events_before`, which is to be counted first.
-- - lost: the run is another's now, has finished, or was to end as cancelled and nobody asked for that.
-- - news: the run is not to wait, since a child has ended that it has not seen, or the approval was closed.
-- - more: an endpoint is to be notified of the end, which takes more than this statement.
--
-- With a job, the job is completed too. One that is not under this lease is an error, AR001; an endpoint that was
-- registered while this waited for a row is one as well, AR002. Neither leaves anything behind.
--
-- A commit that ends a step or parks the run says how often the job was claimed before this holder's claim
-- (`held.attempts_before`). Deaths of holders are counted from there.
-- The last event of a run that failed has the summary of the failure, which is kept in the run's row.
--
-- `checks` are rows of run_checks but for the run and the time. The step that ended has format 2 then, which earlier programs
-- leave alone: they would not know what was blocked. Where a check judged the run's input, `input_refused` says
-- whether it was refused, and `input_text` is what takes its place: in the run's payload, and in the conversation.
--
-- With a parent, the end of a child is recorded among that run's children, and the run is due if it waits for them.
--
-- The parent's row is locked first, then the run's, the rows of its children after it (`locks-from-root-to-leaf`). A part
-- that most commits lack is a statement of its own, which costs nothing if it is skipped.
create function run_commit(
  held held_run, at timestamptz, to_status text, kinds text[], datas json[],
  ended step_end, begun step_begin, call model_call, has_text boolean, flow flow_progress,
  waits run_wait, children children_change, ending run_end,
  checks json default null, input_text text default null, input_refused boolean default null,
  out outcome text, out cost_usd double precision, out totals json
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  ends boolean := to_status in ('completed', 'failed', 'cancelled');
  cost numeric;
  of_conversation_id uuid;
  said_position bigint;
  events_stood bigint;
  beside bigint;
  is_root_cancelled boolean := false;
  is_repeated boolean;
  stood record;
  parent record;
begin
  if ending.is_announced and exists (
    select from webhook_endpoints e
    where e.tenant_id = held.tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    outcome := 'more';
    return;
  end if;
  -- A cancel of a root marks the root alone, so that it is short however many runs are below. A commit that is under way at
  -- that moment may be the last.
  if held.root_run_id is not null and to_status <> 'cancelled' then
    is_root_cancelled := exists (
      select from runs r
      where r.tenant_id = held.tenant_id and r.run_id = held.root_run_id and r.cancel_requested_at is not null
    );
  end if;
  -- Parking waits for this share, and this waits for parking.
  if ending.parent_run_id is not null then
    select r.waiting_for, r.job_id into parent from runs r
    where r.tenant_id = held.tenant_id and r.run_id = ending.parent_run_id for share;
  end if;
  -- A child ends and a call of a model is granted under a share of this row, and an approval is decided under it. So what is
  -- not seen here finds the run waiting.
  if waits.waits_for in ('children', 'approval', 'model') then
    perform from runs r
    where r.tenant_id = held.tenant_id and r.run_id = held.run_id and r.lease_epoch = held.epoch and r.status = 'running'
      and r.cancel_requested_at is null and r.last_seq = held.events_before
    for no key update;
    if found and waits.waits_for = 'approval' then
      if not exists (
        select from approvals a
        where a.tenant_id = held.tenant_id and a.approval_id = waits.approval_id and a.status = 'waiting'
      ) then
        outcome := 'news';
        return;
      end if;
    elsif found and waits.waits_for = 'model' then
      if exists (
        select from model_call_slots s
        where s.tenant_id = held.tenant_id and s.run_id = held.run_id and s.granted_at is not null
      ) then
        outcome := 'news';
        return;
      end if;
    elsif found then
      if exists (
        select from run_children c
        where c.tenant_id = held.tenant_id and c.parent_run_id = held.run_id and c.state <> 'started' and not c.seen
          and c.slot <> all (children.taken_slots)
      ) then
        outcome := 'news';
        return;
      end if;
      if not children.spawns and not exists (
        select from run_children c
        where c.tenant_id = held.tenant_id and c.parent_run_id = held.run_id and c.state = 'started' and not c.seen
      ) then
        raise exception 'a run was to wait for children and has none under way';
      end if;
    end if;
  end if;
  if call.step is not null then
    cost := model_call_cost(
      prompt => call.prompt_tokens, completion => call.completion_tokens, cache_read => call.cache_read_tokens,
      cache_write => call.cache_write_tokens, reasoning => call.reasoning_tokens, prompt_price => call.prompt_price,
      completion_price => call.completion_price, cache_read_price => call.cache_read_price,
      cache_write_price => call.cache_write_price, reasoning_price => call.reasoning_price);
    cost_usd := cost;
  end if;
  -- A run that is held waits for nothing. A wait for a retry counts against a time limit; the others do not.
  update runs r set
    status = to_status,
    last_seq = r.last_seq + cardinality(kinds),
    failure_message = ending.failure,
    failure_summary = case when ending.failure is not null then datas[cardinality(datas)] ->> 'failureSummary' end,
    completed_at = case when ends then at end,
    job_id = case when not ends then r.job_id end,
    attempts_before_progress = coalesce(held.attempts_before, r.attempts_before_progress),
    waiting_for = waits.waits_for,
    wake_at = waits.wakes_at,
    parked_at = case when waits.waits_for <> 'retry' then at end,
    calls = r.calls + case when call.step is null then 0 else 1 end,
    cost_usd = r.cost_usd + coalesce(cost, 0),
    prompt_tokens = r.prompt_tokens + coalesce(call.prompt_tokens, 0),
    completion_tokens = r.completion_tokens + coalesce(call.completion_tokens, 0),
    cache_read_tokens = r.cache_read_tokens + coalesce(call.cache_read_tokens, 0),
    cache_write_tokens = r.cache_write_tokens + coalesce(call.cache_write_tokens, 0),
    reasoning_tokens = r.reasoning_tokens + coalesce(call.reasoning_tokens, 0)
  where r.tenant_id = held.tenant_id and r.run_id = held.run_id and r.lease_epoch = held.epoch and r.status = 'running'
    and (r.cancel_requested_at is not null) = (to_status = 'cancelled') and not is_root_cancelled
    and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = held.events_before
  returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, events_stood;
  if not found then
    select r.* into stood from runs r where r.tenant_id = held.tenant_id and r.run_id = held.run_id;
    if not found or stood.lease_epoch <> held.epoch then
      outcome := 'lost';
      return;
    end if;
    beside := run_events_beside(of_tenant_id => held.tenant_id, of_run_id => held.run_id, counted => held.events_before,
      until => stood.last_seq);
    is_repeated := stood.last_seq - case when stood.cancel_requested_at is null then 0 else 1 end - beside
      >= held.events_before + cardinality(kinds);
    if is_root_cancelled and not is_repeated then
      perform from runs r
      where r.tenant_id = held.tenant_id and r.run_id = held.run_id and r.lease_epoch = held.epoch and r.status = 'running'
      for no key update;
      if found then
        perform run_cancel_one(of_tenant_id => held.tenant_id, of_run_id => held.run_id, at => at, ends => false);
        outcome := 'cancel-asked';
        return;
      end if;
    end if;
    outcome := case
      when is_repeated then 'repeated'
      when stood.status = 'running' and stood.cancel_requested_at is not null and to_status <> 'cancelled'
        then 'cancel-asked'
      when stood.status = 'running' and beside > 0 then 'overtaken'
      else 'lost'
    end;
    if is_repeated and ends then
      totals := run_totals(of_tenant_id => held.tenant_id, of_run_id => held.run_id);
    end if;
    return;
  end if;
  if children.takes_all then
    perform run_take_children(of_tenant_id => held.tenant_id, of_run_id => held.run_id, slots => null);
  elsif cardinality(children.taken_slots) > 0
    and run_take_children(of_tenant_id => held.tenant_id, of_run_id => held.run_id, slots => children.taken_slots)
      <> cardinality(children.taken_slots)
  then
    raise exception 'a run took a child that has not ended, or took it twice';
  end if;
  if ends and exists (
    select from approvals a where a.tenant_id = held.tenant_id and a.run_id = held.run_id and a.status = 'waiting'
  ) then
    perform approval_void(of_tenant_id => held.tenant_id, of_run_id => held.run_id);
  end if;
  if ended.step is not null then
    update run_steps s set status = ended.status, result = ended.result, failures = ended.failures, completed_at = at,
      format = case when checks is null then s.format else 2 end
    where s.tenant_id = held.tenant_id and s.run_id = held.run_id and s.step = ended.step;
  end if;
  if checks is not null then
    insert into run_checks (tenant_id, run_id, step, attempt, ordinal, point, call, name, evaluator, origin, policy_version, verdict,
      code, reason, on_error, duration_us, digest, created_at)
    select held.tenant_id, held.run_id, c.step, c.attempt, c.ordinal, c.point, c.call, c.name, c.evaluator, c.origin,
      c.policy_version, c.verdict, c.code, c.reason, c.on_error, c.duration_us, decode(c.digest, 'hex'), at
    from json_to_recordset(checks) c (step integer, attempt integer, ordinal integer, point text, call integer, name text,
      evaluator text, origin text, policy_version integer, verdict text, code text, reason text, on_error text,
      duration_us bigint, digest text);
  end if;
  if input_text is not null then
    update run_payloads p set input = jsonb_set(p.input::jsonb, '{message}', to_jsonb(input_text))::json
    where p.tenant_id = held.tenant_id and p.run_id = held.run_id;
  end if;
  if input_refused is not null and of_conversation_id is not null then
    update conversation_messages m set content = coalesce(input_text, m.content), refused = input_refused
    from conversations c
    where c.tenant_id = held.tenant_id and c.conversation_id = of_conversation_id and c.active_run_id = held.run_id
      and m.tenant_id = c.tenant_id and m.conversation_id = c.conversation_id and m.position = c.last_position
      and m.role = 'user' and m.run_id = held.run_id and (input_text is not null or m.refused <> input_refused);
  end if;
  if call.step is not null then
    insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, failure,
      prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
      prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost_usd,
      started_at, completed_at, project_id, agent_id, run_created_at)
    select held.tenant_id, held.run_id, call.step, call.attempt, call.model_provider_id, call.model, call.outcome, call.failure,
      call.prompt_tokens, call.completion_tokens, call.cache_read_tokens, call.cache_write_tokens, call.reasoning_tokens,
      call.prompt_price, call.completion_price, call.cache_read_price, call.cache_write_price, call.reasoning_price, cost,
      call.started_at, at, r.project_id, r.agent_id, r.created_at
    from runs r where r.tenant_id = held.tenant_id and r.run_id = held.run_id;
  end if;
  if has_text then
    delete from run_deltas d where d.tenant_id = held.tenant_id and d.run_id = held.run_id;
    delete from run_reasoning d where d.tenant_id = held.tenant_id and d.run_id = held.run_id;
  end if;
  if begun.step is not null then
    perform run_begin_step(of_tenant_id => held.tenant_id, of_run_id => held.run_id, begun => begun, at => at);
  end if;
  if flow.format is not null then
    insert into flow_states (tenant_id, run_id, format, frames, data, context, tasks, slots)
    values (held.tenant_id, held.run_id, flow.format, flow.frames, flow.data, flow.context, flow.tasks, flow.slots)
    on conflict (tenant_id, run_id) do update set
      format = excluded.format, frames = excluded.frames, data = excluded.data, context = excluded.context,
      tasks = excluded.tasks, slots = excluded.slots;
  end if;
  if ending.flow_error is not null then
    insert into flow_states (tenant_id, run_id, error) values (held.tenant_id, held.run_id, ending.flow_error)
    on conflict (tenant_id, run_id) do update set error = excluded.error;
  end if;
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select held.tenant_id, held.run_id, events_stood + e.n, e.kind, e.data, at
  from unnest(kinds, datas) with ordinality e (kind, data, n);
  if ending.output is not null then
    update run_payloads p set output = ending.output where p.tenant_id = held.tenant_id and p.run_id = held.run_id;
  end if;
  if ends and of_conversation_id is not null then
    update conversations c set active_run_id = null,
      last_position = c.last_position + case when ending.message is null then 0 else 1 end
    where c.tenant_id = held.tenant_id and c.conversation_id = of_conversation_id and c.active_run_id = held.run_id
    returning c.last_position into said_position;
    if found and ending.message is not null then
      insert into conversation_messages (tenant_id, conversation_id, position, role, content, run_id, created_at)
      values (held.tenant_id, of_conversation_id, said_position, 'assistant', ending.message, held.run_id, at);
    end if;
  end if;
  if ending.parent_run_id is not null then
    perform run_record_end(of_tenant_id => held.tenant_id, of_parent_run_id => ending.parent_run_id, of_slot => ending.parent_slot,
      of_run_id => held.run_id);
    if not run_update_jobs(done_job => ending.job_id, done_lease => ending.lease_id, removed_jobs => '{}',
      due_jobs => array[case when parent.waiting_for = 'children' then parent.job_id end])
    then
      raise exception 'the run''s job is another''s now' using errcode = 'AR001';
    end if;
  elsif ending.job_id is not null and not job_done(p_id => ending.job_id, p_lease => ending.lease_id) then
    raise exception 'the run''s job is another''s now' using errcode = 'AR001';
  end if;
  if ending.is_announced and exists (
    select from webhook_endpoints e
    where e.tenant_id = held.tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    raise exception 'an endpoint is to be notified of the run''s end' using errcode = 'AR002';
  end if;
  outcome := 'written';
  if ends then
    totals := run_totals(of_tenant_id => held.tenant_id, of_run_id => held.run_id);
  end if;
end
$$;
