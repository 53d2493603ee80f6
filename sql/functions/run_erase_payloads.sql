-- Erases what runs were given, said and answered, with the runs below them: their rows stay, and say what was used and when.
-- Of these runs those are left alone that have not ended, or have a run below that has not; those whose answer the run above has yet
-- to take; and what was erased before. Says how many runs were erased.
create function run_erase_payloads(of_tenant_id uuid, root_ids uuid[], at timestamptz) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  erased constant text := 'Erased.';
  ids uuid[];
  ids_below uuid[];
  event_ids uuid[];
  conversation_ids uuid[];
begin
  select array_agg(locked.run_id) into ids from (
    select r.run_id from runs r
    where r.tenant_id = of_tenant_id and r.run_id = any (root_ids) and r.completed_at is not null
      and r.payload_erased_at is null
      and not exists (
        select from runs b
        where b.tenant_id = of_tenant_id and b.root_run_id = r.run_id and b.parent_run_id is not null and b.completed_at is null)
      and not exists (
        select from run_children c join runs a on a.tenant_id = c.tenant_id and a.run_id = c.parent_run_id
        where c.tenant_id = of_tenant_id and c.parent_run_id = r.parent_run_id and c.slot = r.parent_slot and not c.seen
          and a.completed_at is null)
    order by r.run_id for no key update) locked;
  if ids is null then
    return 0;
  end if;
  select array_agg(locked.run_id) into ids_below from (
    select b.run_id from runs b
    where b.tenant_id = of_tenant_id and b.root_run_id = any (ids) and b.parent_run_id is not null
      and b.payload_erased_at is null
    order by b.run_id for no key update) locked;
  ids := ids || coalesce(ids_below, '{}');
  -- The body of a failed run's event says why it failed.
  select array_agg(p.webhook_event_id) into event_ids from run_payloads p
  where p.tenant_id = of_tenant_id and p.run_id = any (ids) and p.webhook_event_id is not null;
  if event_ids is not null then
    update webhook_events e set body = jsonb_set(e.body::jsonb, '{data,run,failureMessage}', to_jsonb(erased))::text
    where e.tenant_id = of_tenant_id and e.event_id = any (event_ids);
  end if;
  select array_agg(distinct r.conversation_id) into conversation_ids from runs r
  where r.tenant_id = of_tenant_id and r.run_id = any (ids) and r.conversation_id is not null;
  if conversation_ids is not null then
    delete from conversation_messages m
    where m.tenant_id = of_tenant_id and m.conversation_id = any (conversation_ids) and m.run_id = any (ids);
  end if;
  -- The rows of approvals stay, as those of runs do, without what they were about and what was said.
  with about as (
    select a.approval_id from approvals a where a.tenant_id = of_tenant_id and a.run_id = any (ids)
  ), gone as (
    delete from approval_subjects s using about b where s.tenant_id = of_tenant_id and s.approval_id = b.approval_id
  )
  update approvals a set comment = erased
  from about b where a.tenant_id = of_tenant_id and a.approval_id = b.approval_id and a.comment is not null;
  delete from run_payloads p where p.tenant_id = of_tenant_id and p.run_id = any (ids);
  delete from flow_states f where f.tenant_id = of_tenant_id and f.run_id = any (ids);
  delete from run_deltas d where d.tenant_id = of_tenant_id and d.run_id = any (ids);
  delete from run_reasoning d where d.tenant_id = of_tenant_id and d.run_id = any (ids);
  update run_steps s set request = '{}', result = null where s.tenant_id = of_tenant_id and s.run_id = any (ids);
  -- A name of a tool that the agent has not is the model's own text.
  with invented as (
    update run_steps s set name = '' from runs r
    where s.tenant_id = of_tenant_id and s.run_id = any (ids) and s.kind = 'tool'
      and r.tenant_id = of_tenant_id and r.run_id = s.run_id and r.agent_id is not null
      and not exists (
        select from agent_version_tools v join tools t on t.tenant_id = v.tenant_id and t.tool_id = v.tool_id
        where v.tenant_id = of_tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version and t.name = s.name)
    returning s.run_id, s.step
  )
  update run_events e set data = (e.data::jsonb || '{"name": "", "erased": true}')::json from invented i
  where e.tenant_id = of_tenant_id and e.run_id = i.run_id and e.kind like 'step.%' and (e.data ->> 'step')::integer = i.step;
  -- A short text could be guessed from its digest.
  update run_checks c set reason = null, digest = '' where c.tenant_id = of_tenant_id and c.run_id = any (ids);
  update run_model_calls c set failure = erased
  where c.tenant_id = of_tenant_id and c.run_id = any (ids) and c.failure is not null;
  -- The id of a call is the server's own.
  update run_events e set data = ((e.data::jsonb - 'callId') || case
      when e.kind = 'run.failed' then jsonb_build_object('failureMessage', erased, 'failureSummary', erased)
      when e.kind = 'run.waiting' then jsonb_build_object('reason', erased)
      when e.kind = 'step.failed' then jsonb_build_object('reason', erased, 'erased', true)
      when e.kind = 'step.simulated' then jsonb_build_object('request', null, 'requestOmitted', true, 'erased', true)
      when e.kind in ('task.faulted', 'task.caught') then jsonb_build_object('title', erased, 'erased', true)
      when e.data ->> 'type' = 'model' then jsonb_build_object('text', '', 'toolCalls', '[]'::jsonb, 'erased', true)
      when e.data ->> 'type' = 'tool' then jsonb_build_object('output', '', 'erased', true)
      else '{}' end)::json
  where e.tenant_id = of_tenant_id and e.run_id = any (ids)
    and (e.kind in ('step.completed', 'step.failed', 'step.simulated', 'task.faulted', 'task.caught', 'run.failed') or e.kind = 'run.waiting' and e.data ->> 'reason' is not null
      or (e.kind like 'step.%' or e.kind = 'approval.requested') and e.data ->> 'callId' is not null);
  update runs r set payload_erased_at = at,
    failure_message = case when r.failure_message is not null then erased end,
    failure_summary = case when r.failure_message is not null then erased end
  where r.tenant_id = of_tenant_id and r.run_id = any (ids);
  return cardinality(ids);
end
$$;
