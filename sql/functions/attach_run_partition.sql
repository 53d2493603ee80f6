-- Creates the partition of a table for one calendar month (UTC) of UUIDv7 ids. It is created alone and then attached, so
-- that readers and writers of the other partitions do not wait.
create function attach_run_partition(parent text, month date) returns void
language plpgsql as $$
declare
  child text := parent || '_' || to_char(month, 'YYYYMM');
  first text := lpad(to_hex((extract(epoch from month::timestamp) * 1000)::bigint), 12, '0');
  after text := lpad(to_hex((extract(epoch from (month + interval '1 month')::timestamp) * 1000)::bigint), 12, '0');
begin
  if to_regclass(child) is not null then
    return;
  end if;
  execute format('create table %I (like %I including defaults including constraints including storage)', child, parent);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
    (first || repeat('0', 20))::uuid, (after || repeat('0', 20))::uuid);
end $$;
