-- Creates the partitions from the month before `today` to two months ahead.
create function attach_run_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('run partitions'));
  foreach parent in array array['run_payloads', 'run_children', 'run_steps', 'run_model_calls', 'run_events',
    'flow_states', 'approval_subjects', 'approval_log', 'run_checks'] loop
    for ahead in -1..2 loop
      perform attach_run_partition(
        parent => parent, month => (date_trunc('month', today) + make_interval(months => ahead))::date
      );
    end loop;
  end loop;
end $$;
