-- Creates the partitions from the month before `today` to two months ahead.
create function attach_webhook_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('webhook partitions'));
  foreach parent in array array['webhook_events', 'webhook_deliveries', 'webhook_attempts'] loop
    for ahead in -1..2 loop
      perform attach_run_partition(
        parent => parent, month => (date_trunc('month', today::timestamp) + make_interval(months => ahead))::date
      );
    end loop;
  end loop;
end $$;
