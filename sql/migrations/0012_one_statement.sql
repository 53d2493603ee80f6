-- What a run's end took a transaction of four statements for, in one that commits by itself: each round trip wakes a
-- backend and a thread.

-- Ends a run that is held, as run_write does, and completes the job that carried it. Null, and nothing is written, where
-- `is_told` and the tenant has an endpoint for ends of runs: telling it takes more. Where that was added meanwhile, it is an error, AR002, so that nothing is written either. A job that is not this lease's any
-- more is an error, AR001, so that nothing is written then.
create function run_end(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, told bigint, at timestamptz, to_status text,
  kinds text[], datas jsonb[], call_ended jsonb,
  ended_step integer, ended_status text, ended_result jsonb, ended_failures integer,
  begun_step integer, begun_kind text, begun_name text, begun_attempt integer, begun_failures integer, begun_request jsonb,
  failure text, output_given jsonb, message_said text,
  of_job_id bigint, of_lease_id bigint, is_told boolean
) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  if is_told and exists (
    select from webhook_endpoints e
    where e.tenant_id = of_tenant_id and e.unregistered_at is null and 'run.finished' = any (e.events)
  ) then
    return null;
  end if;
  if not run_write(of_tenant_id, of_run_id, of_epoch, told, at, to_status, kinds, datas, call_ended,
    ended_step, ended_status, ended_result, ended_failures,
    begun_step, begun_kind, begun_name, begun_attempt, begun_failures, begun_request,
    failure, output_given, message_said)
  then
    return false;
  end if;
  if not job_done(of_job_id, of_lease_id) then
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
