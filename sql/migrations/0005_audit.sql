-- Decisions of access, the chain that they stand in, and what purges leave behind. No row here
-- refers to another table: a record outlives what it is about.

-- One row a writer: about as many as there are replicas, because a slot whose lease has run out is
-- taken again. Its epoch fences whoever held it before.
create table audit_writers (
  slot integer primary key check (slot > 0),
  epoch bigint not null,
  -- Of the last decision; the next one is one higher.
  position bigint not null,
  -- Of the last decision; the next one is not earlier.
  decided_at timestamptz not null,
  -- Of the last batch of each chain; 32 zero bytes before the first.
  allowed_digest bytea not null check (length(allowed_digest) = 32),
  denied_digest bytea not null check (length(denied_digest) = 32),
  leased_until timestamptz
) with (fillfactor = 50);

create table audit_decisions (
  tenant_id uuid not null,
  slot integer not null,
  position bigint not null,
  decided_at timestamptz not null,
  outcome text not null,
  id uuid not null,
  actor_subject text not null,
  action text not null,
  resource text not null,
  reason text not null,
  stage text not null,
  failing_part text,
  check_user text,
  check_relation text,
  check_object text,
  store_id text,
  model_id text,
  duration_us bigint not null,
  request_id uuid,
  trace_id text,
  key_id uuid,
  route text,
  run_id uuid,
  client_address text
) partition by list (outcome);

-- Time and position rise together within a slot, so one index serves the order and the bounds.
create index audit_decisions_slot on audit_decisions (tenant_id, slot, decided_at, position);
create index audit_decisions_actor on audit_decisions (tenant_id, actor_subject, slot, decided_at, position);
create index audit_decisions_resource on audit_decisions (tenant_id, resource, slot, decided_at, position);
create index audit_decisions_run on audit_decisions (tenant_id, run_id, slot, decided_at, position)
  where run_id is not null;
-- For purges and exports, which read by time across tenants.
create index audit_decisions_time on audit_decisions using brin (decided_at) with (autosummarize = on);

-- A chain for each slot and outcome, so that a purge takes whole beginnings of chains.
create table audit_batches (
  slot integer not null,
  outcome text not null,
  first_position bigint not null,
  last_position bigint not null,
  row_count integer not null,
  -- Of its last decision. No batch spans two months, so a month's partitions go together.
  decided_at timestamptz not null,
  digest bytea not null check (length(digest) = 32),
  previous_digest bytea not null check (length(previous_digest) = 32),
  primary key (slot, outcome, first_position, decided_at)
) partition by list (outcome);

create table audit_decisions_allowed partition of audit_decisions for values in ('allowed') partition by range (decided_at);
create table audit_decisions_denied partition of audit_decisions for values in ('denied') partition by range (decided_at);
create table audit_batches_allowed partition of audit_batches for values in ('allowed') partition by range (decided_at);
create table audit_batches_denied partition of audit_batches for values in ('denied') partition by range (decided_at);

-- How far a chain was purged, signed.
create table audit_anchors (
  slot integer not null,
  outcome text not null check (outcome in ('allowed', 'denied')),
  through_position bigint not null,
  -- Of the last batch that went.
  digest bytea not null check (length(digest) = 32),
  -- Since the chain began.
  rows_purged bigint not null,
  purged_at timestamptz not null,
  public_key bytea not null check (length(public_key) = 32),
  signature bytea not null check (length(signature) = 64),
  primary key (slot, outcome)
);

-- The partition of a table for one calendar month (UTC), made apart and then attached, so that
-- readers and writers of the others are not held up.
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

-- Makes the partitions from the month before `today` to two months ahead.
create function attach_audit_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('audit partitions'));
  foreach parent in array array['audit_decisions_allowed', 'audit_decisions_denied', 'audit_batches_allowed', 'audit_batches_denied'] loop
    for ahead in -1..2 loop
      perform attach_audit_partition(parent, (date_trunc('month', today::timestamp) + make_interval(months => ahead))::date);
    end loop;
  end loop;
end $$;

select attach_audit_partitions((now() at time zone 'UTC')::date);

-- Drops the month's partitions of one outcome. It waits for no reader for long: writers would wait
-- behind it.
create function drop_audit_partitions(outcome text, month date) returns void
language plpgsql as $$
begin
  perform set_config('lock_timeout', '200ms', true);
  execute format('drop table if exists %I', 'audit_decisions_' || outcome || '_' || to_char(month, 'YYYYMM'));
  execute format('drop table if exists %I', 'audit_batches_' || outcome || '_' || to_char(month, 'YYYYMM'));
end $$;
