-- Creates the partitions from the month before `today` to two months ahead.
create function attach_audit_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('audit partitions'));
  foreach parent in array array['audit_decisions_allowed', 'audit_decisions_denied', 'audit_batches_allowed', 'audit_batches_denied'] loop
    for ahead in -1..2 loop
      perform attach_audit_partition(
        parent => parent, month => (date_trunc('month', today::timestamp) + make_interval(months => ahead))::date
      );
    end loop;
  end loop;
end $$;
