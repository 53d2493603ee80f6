-- Ends a child run that cannot begin, in the transaction of its parent's commit, which has inserted it: as failed, without a
-- job. Its parent has not seen that.
create function run_refuse_child(
  of_tenant_id uuid, of_parent_run_id uuid, of_slot integer, of_run_id uuid, at timestamptz, failure_said text,
  failed_with json, kind text, data json
) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  began record;
begin
  select r.job_id, r.last_seq into began from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  perform job_cancel(p_ids => array[began.job_id]);
  update runs r set status = 'failed', failure_message = failure_said,
    failure_summary = data ->> 'failureSummary', completed_at = at, job_id = null,
    last_seq = began.last_seq + 1
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
  values (of_tenant_id, of_run_id, began.last_seq + 1, kind, data, at);
  insert into flow_states (tenant_id, run_id, error) values (of_tenant_id, of_run_id, failed_with);
  perform run_record_end(of_tenant_id => of_tenant_id, of_parent_run_id => of_parent_run_id, of_slot => of_slot,
    of_run_id => of_run_id);
end
$$;
