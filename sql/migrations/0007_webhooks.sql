-- Outbound webhooks: endpoints, the events that they are told of, deliveries and their attempts.
-- Events, deliveries and attempts grow: they are cut by id (UUIDv7) into calendar months (UTC).

create table webhook_endpoints (
  tenant_id uuid not null references tenants,
  endpoint_id uuid not null,
  url text not null check (length(url) <= 2048),
  events text[] not null check (cardinality(events) between 1 and 3
    and events <@ '{run.finished,improvement-pass.finished,approval.requested}'::text[]),
  secret_environment text not null,
  secret_name text not null,
  -- The secret before the last change of it signs as well until then.
  previous_environment text,
  previous_name text,
  previous_until timestamptz,
  -- Null throughout where no filter was given.
  has_filter boolean not null,
  flow_ids text[],
  project_id uuid,
  include_dry_runs boolean,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Nothing goes out after it. The row stays until its last delivery was dropped.
  unregistered_at timestamptz,
  primary key (tenant_id, endpoint_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, created_by) references users,
  check ((previous_environment is null) = (previous_name is null)),
  check ((previous_environment is null) = (previous_until is null)),
  check (has_filter or (flow_ids is null and project_id is null and include_dry_runs is null))
);
create index webhook_endpoints_registered on webhook_endpoints (tenant_id, endpoint_id) where unregistered_at is null;

-- What became of an endpoint's deliveries, counted as they end.
create table webhook_endpoint_counts (
  tenant_id uuid not null,
  endpoint_id uuid not null,
  delivered bigint not null default 0,
  failed bigint not null default 0,
  -- The newest attempt failed.
  is_failing boolean not null default false,
  -- The newest attempt took long, however it ended.
  is_slow boolean not null default false,
  last_delivered_at timestamptz,
  last_failed_at timestamptz,
  last_error text,
  last_status smallint,
  primary key (tenant_id, endpoint_id),
  foreign key (tenant_id, endpoint_id) references webhook_endpoints on delete cascade
) with (fillfactor = 50);

create table webhook_events (
  tenant_id uuid not null,
  event_id uuid not null,
  type text not null,
  -- The whole body as it is sent, every time.
  body text not null,
  -- Of run.finished.
  run_id uuid,
  created_at timestamptz not null,
  primary key (tenant_id, event_id)
) partition by range (event_id);

create table webhook_deliveries (
  tenant_id uuid not null,
  delivery_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  -- Of the event, kept here for the lists.
  type text not null,
  run_id uuid,
  -- The delivery that this one sends again, and the newest one that sends this one again.
  resends uuid,
  resent_as uuid,
  state text not null check (state in ('being-sent', 'delivered', 'failed')),
  attempts integer not null default 0,
  next_attempt_at timestamptz,
  last_error text,
  last_status smallint,
  job_id bigint,
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (tenant_id, delivery_id),
  check ((state = 'being-sent') = (ended_at is null))
) partition by range (delivery_id);
create index webhook_deliveries_endpoint on webhook_deliveries (tenant_id, endpoint_id, delivery_id);
create index webhook_deliveries_state on webhook_deliveries (tenant_id, endpoint_id, state, delivery_id);
-- What still waits: nothing that it needs is dropped.
create index webhook_deliveries_waiting on webhook_deliveries (event_id) where state = 'being-sent';

create table webhook_attempts (
  tenant_id uuid not null,
  delivery_id uuid not null,
  attempt integer not null check (attempt > 0),
  endpoint_id uuid not null,
  begun_at timestamptz not null,
  -- In flight until it has ended, and never longer than this: by the database's clock.
  ends_by timestamptz not null,
  ended_at timestamptz,
  duration_ms integer,
  -- Null: it was delivered, or has not ended.
  reason text,
  status smallint,
  -- What went wrong, for a person: names the rule and the address that refuse it, and never a secret.
  message text check (length(message) <= 1000),
  -- Connected to, or tried.
  address inet,
  answer bytea check (octet_length(answer) <= 16384),
  primary key (tenant_id, delivery_id, attempt)
) partition by range (delivery_id);
create index webhook_attempts_open on webhook_attempts (tenant_id, endpoint_id) where ended_at is null;

-- Makes the partitions from the month before `today` to two months ahead.
create function attach_webhook_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('webhook partitions'));
  foreach parent in array array['webhook_events', 'webhook_deliveries', 'webhook_attempts'] loop
    for ahead in -1..2 loop
      perform attach_run_partition(parent, (date_trunc('month', today::timestamp) + make_interval(months => ahead))::date);
    end loop;
  end loop;
end $$;

-- Drops a month, unless something that still waits needs it: says whether it did. It waits for no writer for long,
-- because others would wait behind it.
create function drop_webhook_month(month date) returns boolean
language plpgsql as $$
declare
  after uuid := (lpad(to_hex((extract(epoch from (month + interval '1 month')::timestamp) * 1000)::bigint), 12, '0')
    || repeat('0', 20))::uuid;
  parent text;
begin
  perform set_config('lock_timeout', '200ms', true);
  -- Whoever sends an old event again at this moment is waited for, and seen below.
  lock table webhook_events, webhook_deliveries, webhook_attempts in access exclusive mode;
  if exists (select from webhook_deliveries where state = 'being-sent' and event_id < after)
    or exists (select from webhook_deliveries where state = 'being-sent' and delivery_id < after) then
    return false;
  end if;
  foreach parent in array array['webhook_events', 'webhook_deliveries', 'webhook_attempts'] loop
    execute format('drop table if exists %I', parent || '_' || to_char(month, 'YYYYMM'));
  end loop;
  return true;
end $$;

select attach_webhook_partitions((now() at time zone 'UTC')::date);
