-- One commit of a run that is held: the fence, the usage, the step that ended, the step that begins, the events, a wait or
-- the end. Each commit names the number of events that the run had before it (`events_before`, the event of a cancel not
-- counted) and adds at least one. So a repeated commit differs from the next one. Others than the holder write three kinds of
-- events while it is held: that of a cancel, once, `approval.escalated` and `approval.unassigned`.
--
-- Says what became of it; all but the first have written nothing of it:
-- - written
-- - repeated: this holder wrote it before, and the answer was lost.
-- - cancel-asked: a cancel was asked for, after which the run takes no commit but an end of that kind. With
--   `of_root_run_id`, of a run below that root, a cancel of the root counts too: the run is marked as asked to end with it.
-- - overtaken: an event of another kind was written after `events_before`, which is to be counted first.
-- - lost: the run is another's now, has finished, or was to end as cancelled and nobody asked for that.
-- - news: the run is not to wait, since a child has ended that it has not seen, or the approval was closed.
-- - more: an endpoint is to be notified of the end, which takes more than this statement.
--
-- With a job, the job is completed too. One that is not under this lease is an error, AR001; an endpoint that was
-- registered while this waited for a row is one as well, AR002. Neither leaves anything behind.
--
-- A commit that ends a step or parks the run says how often the job was claimed before this holder's claim
-- (`of_attempts_before`). Deaths of holders are counted from there.
-- The last event of a run that failed has the summary of the failure, which is kept in the run's row.
--
-- With a parent, the end of a child is recorded among that run's children, and the run is due if it waits for them.
--
-- The parent's row is locked first, then the run's, the rows of its children after it (`locks-from-root-to-leaf`). A part
-- that most commits lack is a statement of its own, which costs nothing if it is skipped.
create function run_write(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, events_before bigint, at timestamptz, to_status text,
  kinds text[], datas json[],
  ended_step integer, ended_status text, ended_result json, ended_failures integer,
  begun_step integer, begun_kind text, begun_name text, begun_path text, begun_attempt integer, begun_failures integer,
  begun_request json,
  failure_said text, output_given json, message_said text, has_text boolean,
  call_step integer, call_attempt integer, call_provider_id uuid, call_model text, call_outcome text, call_failure text,
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  price_prompt numeric, price_completion numeric, price_cache_read numeric, price_cache_write numeric, price_reasoning numeric,
  call_started_at timestamptz,
  waits_for text, wakes_at timestamptz, taken_slots integer[], takes_all boolean,
  spawns boolean, of_job_id bigint, of_lease_id bigint, is_announced boolean,
  flow_format smallint default null, flow_frames json default null, flow_data json default null,
  flow_context json default null, flow_tasks integer default null, flow_slots integer default null,
  awaited_approval_id uuid default null, flow_error json default null,
  of_parent_run_id uuid default null, of_parent_slot integer default null, of_attempts_before integer default null,
  of_root_run_id uuid default null
) returns text
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
  if is_announced and exists (
    select from webhook_endpoints e
    where e.tenant_id = of_tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    return 'more';
  end if;
  -- A cancel of a root marks the root alone, so that it is short however many runs are below. A commit that is under way at
  -- that moment may be the last.
  if of_root_run_id is not null and to_status <> 'cancelled' then
    is_root_cancelled := exists (
      select from runs r
      where r.tenant_id = of_tenant_id and r.run_id = of_root_run_id and r.cancel_requested_at is not null
    );
  end if;
  -- Parking waits for this share, and this waits for parking.
  if of_parent_run_id is not null then
    select r.waiting_for, r.job_id into parent from runs r
    where r.tenant_id = of_tenant_id and r.run_id = of_parent_run_id for share;
  end if;
  -- A child ends and a call of a model is granted under a share of this row, and an approval is decided under it. So what is
  -- not seen here finds the run waiting.
  if waits_for in ('children', 'approval', 'model') then
    perform from runs r
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      and r.cancel_requested_at is null and r.last_seq = events_before
    for no key update;
    if found and waits_for = 'approval' then
      if not exists (
        select from approvals a
        where a.tenant_id = of_tenant_id and a.approval_id = awaited_approval_id and a.status = 'waiting'
      ) then
        return 'news';
      end if;
    elsif found and waits_for = 'model' then
      if exists (
        select from model_call_slots s
        where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.granted_at is not null
      ) then
        return 'news';
      end if;
    elsif found then
      if exists (
        select from run_children c
        where c.tenant_id = of_tenant_id and c.parent_run_id = of_run_id and c.state <> 'started' and not c.seen
          and c.slot <> all (taken_slots)
      ) then
        return 'news';
      end if;
      if not spawns and not exists (
        select from run_children c
        where c.tenant_id = of_tenant_id and c.parent_run_id = of_run_id and c.state = 'started' and not c.seen
      ) then
        raise exception 'a run was to wait for children and has none under way';
      end if;
    end if;
  end if;
  if call_step is not null then
    cost := model_call_cost(
      prompt => prompt, completion => completion, cache_read => cache_read, cache_write => cache_write,
      reasoning => reasoning, prompt_price => price_prompt, completion_price => price_completion,
      cache_read_price => price_cache_read, cache_write_price => price_cache_write, reasoning_price => price_reasoning);
    update runs r set
      status = to_status,
      last_seq = r.last_seq + cardinality(kinds),
      failure_message = failure_said,
      failure_summary = case when failure_said is not null then datas[cardinality(datas)] ->> 'failureSummary' end,
      completed_at = case when ends then at end,
      job_id = case when not ends then r.job_id end,
      attempts_before_progress = coalesce(of_attempts_before, r.attempts_before_progress),
      calls = r.calls + 1,
      cost_usd = r.cost_usd + coalesce(cost, 0),
      prompt_tokens = r.prompt_tokens + coalesce(prompt, 0),
      completion_tokens = r.completion_tokens + coalesce(completion, 0),
      cache_read_tokens = r.cache_read_tokens + coalesce(cache_read, 0),
      cache_write_tokens = r.cache_write_tokens + coalesce(cache_write, 0),
      reasoning_tokens = r.reasoning_tokens + coalesce(reasoning, 0)
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      and (r.cancel_requested_at is not null) = (to_status = 'cancelled') and not is_root_cancelled
      and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = events_before
    returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, events_stood;
  else
    update runs r set
      status = to_status,
      last_seq = r.last_seq + cardinality(kinds),
      failure_message = failure_said,
      failure_summary = case when failure_said is not null then datas[cardinality(datas)] ->> 'failureSummary' end,
      completed_at = case when ends then at end,
      job_id = case when not ends then r.job_id end,
      attempts_before_progress = coalesce(of_attempts_before, r.attempts_before_progress)
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      and (r.cancel_requested_at is not null) = (to_status = 'cancelled') and not is_root_cancelled
      and r.last_seq - case when r.cancel_requested_at is null then 0 else 1 end = events_before
    returning r.conversation_id, r.last_seq - cardinality(kinds) into of_conversation_id, events_stood;
  end if;
  if not found then
    select r.* into stood from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
    if not found or stood.lease_epoch <> of_epoch then
      return 'lost';
    end if;
    beside := run_events_beside(of_tenant_id => of_tenant_id, of_run_id => of_run_id, counted => events_before,
      until => stood.last_seq);
    is_repeated := stood.last_seq - case when stood.cancel_requested_at is null then 0 else 1 end - beside
      >= events_before + cardinality(kinds);
    if is_root_cancelled and not is_repeated then
      perform from runs r
      where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
      for no key update;
      if found then
        perform run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, ends => false);
        return 'cancel-asked';
      end if;
    end if;
    return case
      when is_repeated then 'repeated'
      when stood.status = 'running' and stood.cancel_requested_at is not null and to_status <> 'cancelled'
        then 'cancel-asked'
      when stood.status = 'running' and beside > 0 then 'overtaken'
      else 'lost'
    end;
  end if;
  if takes_all then
    perform run_take_children(of_tenant_id => of_tenant_id, of_run_id => of_run_id, slots => null);
  elsif cardinality(taken_slots) > 0
    and run_take_children(of_tenant_id => of_tenant_id, of_run_id => of_run_id, slots => taken_slots) <> cardinality(taken_slots)
  then
    raise exception 'a run took a child that has not ended, or took it twice';
  end if;
  if ends and exists (
    select from approvals a where a.tenant_id = of_tenant_id and a.run_id = of_run_id and a.status = 'waiting'
  ) then
    perform approval_void(of_tenant_id => of_tenant_id, of_run_id => of_run_id);
  end if;
  -- A wait for a retry counts against a time limit; the others do not.
  if waits_for is not null then
    update runs r set waiting_for = waits_for, wake_at = wakes_at, parked_at = case when waits_for <> 'retry' then at end
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  end if;
  if ended_step is not null then
    update run_steps s set status = ended_status, result = ended_result, failures = ended_failures, completed_at = at
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = ended_step;
  end if;
  if call_step is not null then
    insert into run_model_calls (tenant_id, run_id, step, attempt, model_provider_id, model, outcome, failure,
      prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
      prompt_price, completion_price, cache_read_price, cache_write_price, reasoning_price, cost_usd,
      started_at, completed_at, project_id, agent_id, run_created_at)
    select of_tenant_id, of_run_id, call_step, call_attempt, call_provider_id, call_model, call_outcome, call_failure,
      prompt, completion, cache_read, cache_write, reasoning,
      price_prompt, price_completion, price_cache_read, price_cache_write, price_reasoning, cost, call_started_at, at,
      r.project_id, r.agent_id, r.created_at
    from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  end if;
  if has_text then
    delete from run_deltas d where d.tenant_id = of_tenant_id and d.run_id = of_run_id;
    delete from run_reasoning d where d.tenant_id = of_tenant_id and d.run_id = of_run_id;
  end if;
  if begun_attempt = 1 then
    insert into run_steps (tenant_id, run_id, step, kind, name, path, status, attempt, failures, request, started_at)
    values (of_tenant_id, of_run_id, begun_step, begun_kind, begun_name, begun_path, 'running', 1, begun_failures,
      begun_request, at);
  elsif begun_attempt > 1 then
    update run_steps s set status = 'running', attempt = begun_attempt, failures = begun_failures, started_at = at,
      completed_at = null
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = begun_step;
  end if;
  if flow_format is not null then
    insert into flow_states (tenant_id, run_id, format, frames, data, context, tasks, slots)
    values (of_tenant_id, of_run_id, flow_format, flow_frames, flow_data, flow_context, flow_tasks, flow_slots)
    on conflict (tenant_id, run_id) do update set
      format = excluded.format, frames = excluded.frames, data = excluded.data, context = excluded.context,
      tasks = excluded.tasks, slots = excluded.slots;
  end if;
  if flow_error is not null then
    insert into flow_states (tenant_id, run_id, error) values (of_tenant_id, of_run_id, flow_error)
    on conflict (tenant_id, run_id) do update set error = excluded.error;
  end if;
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  select of_tenant_id, of_run_id, events_stood + e.n, e.kind, e.data, at
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
  if of_parent_run_id is not null then
    perform run_record_end(of_tenant_id => of_tenant_id, of_parent_run_id => of_parent_run_id, of_slot => of_parent_slot,
      of_run_id => of_run_id);
    if not run_update_jobs(done_job => of_job_id, done_lease => of_lease_id, removed_jobs => '{}',
      due_jobs => array[case when parent.waiting_for = 'children' then parent.job_id end])
    then
      raise exception 'the run''s job is another''s now' using errcode = 'AR001';
    end if;
  elsif of_job_id is not null and not job_done(p_id => of_job_id, p_lease => of_lease_id) then
    raise exception 'the run''s job is another''s now' using errcode = 'AR001';
  end if;
  if is_announced and exists (
    select from webhook_endpoints e
    where e.tenant_id = of_tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    raise exception 'an endpoint is to be notified of the run''s end' using errcode = 'AR002';
  end if;
  return 'written';
end
$$;
