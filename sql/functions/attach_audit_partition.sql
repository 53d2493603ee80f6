-- Creates the partition of a table for one calendar month (UTC). It is created alone and then attached, so that readers and
-- writers of the other partitions do not wait.
create function attach_audit_partition(parent text, month date) returns void
language plpgsql as $$
declare
  child text := parent || '_' || to_char(month, 'YYYYMM');
begin
  if to_regclass(child) is not null then
    return;
  end if;
  execute format('create table %I (like %I including defaults including constraints including storage)', child, parent);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
    month::timestamp at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
end $$;
