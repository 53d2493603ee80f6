-- Creates the partitions from the month of a week before `today` to two months ahead. The month before is for a clock that is
-- behind. Later it may be past the retention, which is two weeks at least, and a week: the upkeep would drop it again each hour.
create function attach_webhook_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  first date := date_trunc('month', (today - 7)::timestamp)::date;
  last date := (date_trunc('month', today::timestamp) + interval '2 months')::date;
  starts timestamp;
begin
  perform pg_advisory_xact_lock(hashtext('webhook partitions'));
  foreach parent in array array['webhook_events', 'webhook_deliveries', 'webhook_attempts'] loop
    for starts in select generate_series(first::timestamp, last::timestamp, interval '1 month') loop
      perform attach_run_partition(parent => parent, month => starts::date);
    end loop;
  end loop;
end $$;
