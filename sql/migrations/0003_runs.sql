-- Runs: the narrow row that is fenced, and beside it what grows. What grows is cut into partitions
-- by run id (UUIDv7, so by time): an old month is dropped, never deleted row by row.

create table runs (
  tenant_id uuid not null,
  run_id uuid not null,
  project_id uuid not null,
  flow_id text not null,
  flow_version text not null,
  status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
  origin text not null check (origin in ('app', 'command-line', 'run')),
  parent_run_id uuid,
  dry_run boolean not null,
  agent_id uuid,
  agent_version text,
  conversation_id uuid,
  via text check (via in ('latest', 'live', 'explicit', 'conversation')),
  failure_message text,
  cancel_requested_at timestamptz,
  created_by uuid not null,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  -- The waiting job that will carry the run on: removed with it when the run is cancelled.
  job_id bigint,
  -- Raised by every claim. A write that carries an older epoch changes nothing.
  lease_epoch bigint not null default 0,
  -- The number of the newest event: allocated under this row's lock.
  last_seq bigint not null default 0,
  calls bigint not null default 0,
  cost_usd numeric(30, 15) not null default 0,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  primary key (tenant_id, run_id),
  foreign key (tenant_id, project_id) references projects,
  foreign key (tenant_id, agent_id, agent_version) references agent_versions,
  foreign key (tenant_id, conversation_id) references conversations,
  foreign key (tenant_id, created_by) references users,
  check ((status in ('completed', 'failed', 'cancelled')) = (completed_at is not null)),
  check ((status = 'failed') = (failure_message is not null)),
  check ((agent_id is null) = (via is null))
) with (fillfactor = 70);
create index runs_project on runs (tenant_id, project_id, run_id);
create index runs_agent on runs (tenant_id, agent_id, run_id);
create index runs_conversation on runs (tenant_id, conversation_id, run_id);

create table run_payloads (
  tenant_id uuid not null,
  run_id uuid not null,
  input jsonb not null,
  output jsonb,
  primary key (tenant_id, run_id)
) partition by range (run_id);

-- The journal. A row stands before the step's effect begins; its result is written with the events
-- and the usage that follow from it, in one transaction.
create table run_steps (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null check (step > 0),
  kind text not null check (kind in ('model', 'tool')),
  name text not null,
  status text not null check (status in ('running', 'completed', 'failed')),
  attempt integer not null check (attempt > 0),
  -- How many attempts the other side failed. Attempts lost to a crash are counted in `attempt` alone.
  failures integer not null default 0 check (failures between 0 and attempt),
  request jsonb not null,
  result jsonb,
  started_at timestamptz not null,
  completed_at timestamptz,
  primary key (tenant_id, run_id, step),
  check ((status = 'completed') = (result is not null))
) partition by range (run_id);

-- One row a model call, failed ones included, with the prices it was charged at. A count that the
-- provider did not give is null, not zero.
create table run_model_calls (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  model_provider_id uuid not null,
  model text not null,
  outcome text not null check (outcome in ('completed', 'failed', 'lost', 'cancelled')),
  failure text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cache_read_tokens bigint,
  cache_write_tokens bigint,
  reasoning_tokens bigint,
  prompt_price numeric(20, 10),
  completion_price numeric(20, 10),
  cache_read_price numeric(20, 10),
  cache_write_price numeric(20, 10),
  reasoning_price numeric(20, 10),
  cost_usd numeric(30, 15),
  started_at timestamptz not null,
  completed_at timestamptz not null,
  primary key (tenant_id, run_id, step, attempt)
) partition by range (run_id);

-- What a call costs in US dollars. Cache tokens are part of the prompt and reasoning tokens part of the
-- completion; a part without a price of its own costs what its whole costs; a count that is not known is
-- not charged. Null when nothing is known, or when tokens that were counted have no price.
create function model_call_cost(
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  prompt_price numeric, completion_price numeric, cache_read_price numeric, cache_write_price numeric, reasoning_price numeric
) returns numeric language sql immutable parallel safe as $$
  select case when coalesce(prompt, completion, cache_read, cache_write, reasoning) is not null then
    sum(case when tokens = 0 then 0 else tokens * price / 1000000 end) filter (where tokens is not null)
      + case when bool_or(tokens > 0 and price is null) then null else 0 end
  end
  from (values
    (greatest(prompt - coalesce(cache_read, 0) - coalesce(cache_write, 0), 0), prompt_price),
    (cache_read, coalesce(cache_read_price, prompt_price)),
    (cache_write, coalesce(cache_write_price, prompt_price)),
    (greatest(completion - coalesce(reasoning, 0), 0), completion_price),
    (reasoning, coalesce(reasoning_price, completion_price))
  ) part (tokens, price)
$$;

-- The durable progress. `seq` is the SSE id. `position` only tells a reader on another replica
-- which runs moved; the truth is (run_id, seq).
create sequence run_event_position;
create table run_events (
  tenant_id uuid not null,
  run_id uuid not null,
  seq bigint not null check (seq > 0),
  position bigint not null default nextval('run_event_position'),
  kind text not null,
  data jsonb not null,
  created_at timestamptz not null,
  primary key (tenant_id, run_id, seq)
) partition by range (run_id);
create index run_events_position on run_events (position);

-- Text that is being streamed, for readers on other replicas and for those who join in the middle.
-- Dropped when the step's whole message is written; lost in a crash, which costs nothing.
create sequence run_delta_position;
create unlogged table run_deltas (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  text_offset integer not null,
  text text not null,
  position bigint not null default nextval('run_delta_position'),
  primary key (tenant_id, run_id, step, attempt, text_offset)
);
create index run_deltas_position on run_deltas (position);

-- Written in the transaction of the effect it guards; names what was made, never a secret.
create table idempotency_keys (
  tenant_id uuid not null references tenants,
  principal text not null,
  route text not null,
  key text not null check (length(key) between 1 and 255),
  body_digest bytea not null check (octet_length(body_digest) = 32),
  object_id uuid not null,
  created_at timestamptz not null,
  primary key (tenant_id, principal, route, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);

-- The partition of a table for one calendar month (UTC), made apart and then attached, so that
-- readers and writers of the others are not held up.
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

-- Makes the partitions from the month of `today` minus one to two months ahead.
create function attach_run_partitions(today date) returns void
language plpgsql as $$
declare
  parent text;
  ahead integer;
begin
  perform pg_advisory_xact_lock(hashtext('run partitions'));
  foreach parent in array array['run_payloads', 'run_steps', 'run_model_calls', 'run_events'] loop
    for ahead in -1..2 loop
      perform attach_run_partition(parent, (date_trunc('month', today) + make_interval(months => ahead))::date);
    end loop;
  end loop;
end $$;
