-- Cancels one run. The caller has locked its row and, before it, its parent's. With `ends`, a run that nobody holds ends
-- here and takes what its children used. Any other run is asked to end. `became`: `cancelled`, `asked` or `finished`.
create function run_cancel_one(
  of_tenant_id uuid, of_run_id uuid, at timestamptz, ends boolean,
  out became text, out job bigint
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  stood record;
begin
  select r.status, r.cancel_requested_at, r.job_id, r.last_seq, r.conversation_id, r.parent_run_id, r.parent_slot, r.labels
  into stood
  from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  job := stood.job_id;
  if stood.status in ('completed', 'failed', 'cancelled') then
    became := 'finished';
    return;
  end if;
  if stood.status = 'running' or not ends then
    became := 'asked';
    if stood.cancel_requested_at is null then
      update runs r set cancel_requested_at = at, last_seq = r.last_seq + 1
      where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
      insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
      values (of_tenant_id, of_run_id, stood.last_seq + 1, 'run.cancelRequested', '{}', at);
    end if;
    return;
  end if;
  became := 'cancelled';
  perform run_take_children(of_tenant_id => of_tenant_id, of_run_id => of_run_id, slots => null);
  update runs r set
    status = 'cancelled', cancel_requested_at = coalesce(r.cancel_requested_at, at), completed_at = at, job_id = null,
    last_seq = r.last_seq + 1, waiting_for = null, wake_at = null, parked_at = null
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  values (of_tenant_id, of_run_id, stood.last_seq + 1, 'run.cancelled',
    case when stood.labels is null then '{}' else json_build_object('labels', stood.labels) end, at);
  perform approval_void(of_tenant_id => of_tenant_id, of_run_id => of_run_id);
  delete from run_deltas d where d.tenant_id = of_tenant_id and d.run_id = of_run_id;
  delete from run_reasoning d where d.tenant_id = of_tenant_id and d.run_id = of_run_id;
  if stood.conversation_id is not null then
    update conversations c set active_run_id = null
    where c.tenant_id = of_tenant_id and c.conversation_id = stood.conversation_id and c.active_run_id = of_run_id;
  end if;
  if stood.parent_slot is not null then
    perform run_record_end(of_tenant_id => of_tenant_id, of_parent_run_id => stood.parent_run_id,
      of_slot => stood.parent_slot, of_run_id => of_run_id);
  end if;
end
$$;
