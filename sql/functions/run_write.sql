-- `run_commit` as binaries before it call it, with each part of a commit as arguments of its own.
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
begin
  return (select c.outcome from run_commit(
    held => row(of_tenant_id, of_run_id, of_epoch, events_before, of_root_run_id, of_attempts_before)::held_run,
    at => at, to_status => to_status, kinds => kinds, datas => datas,
    ended => row(ended_step, ended_status, ended_result, ended_failures)::step_end,
    begun => row(begun_step, begun_kind, begun_name, begun_path, begun_attempt, begun_failures, begun_request)::step_begin,
    call => row(call_step, call_attempt, call_provider_id, call_model, call_outcome, call_failure, call_started_at,
      prompt, completion, cache_read, cache_write, reasoning,
      price_prompt, price_completion, price_cache_read, price_cache_write, price_reasoning)::model_call,
    has_text => has_text,
    flow => row(flow_format, flow_frames, flow_data, flow_context, flow_tasks, flow_slots)::flow_progress,
    waits => row(waits_for, wakes_at, awaited_approval_id)::run_wait,
    children => row(taken_slots, takes_all, spawns)::children_change,
    ending => row(failure_said, output_given, message_said, flow_error, of_job_id, of_lease_id, of_parent_run_id, of_parent_slot,
      is_announced)::run_end) c);
end
$$;
