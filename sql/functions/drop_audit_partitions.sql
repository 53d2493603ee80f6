-- Drops the month's partitions of one outcome. It waits briefly for readers: writers would queue behind it.
create function drop_audit_partitions(outcome text, month date) returns void
language plpgsql as $$
begin
  perform set_config('lock_timeout', '200ms', true);
  execute format('drop table if exists %I', 'audit_decisions_' || outcome || '_' || to_char(month, 'YYYYMM'));
  execute format('drop table if exists %I', 'audit_batches_' || outcome || '_' || to_char(month, 'YYYYMM'));
end $$;
