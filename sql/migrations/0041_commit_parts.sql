-- The parts of a commit of a held run, as `run_commit` takes them. A part never changes: one more is a type and a parameter of its
-- own, so that earlier programs go on writing theirs.
create type held_run as (
  -- Its root is looked at, where it is given.
  tenant_id uuid, run_id uuid, epoch bigint, events_before bigint, root_run_id uuid,
  -- Of a commit that ends a step or parks the run.
  attempts_before integer
);
create type step_end as (step integer, status text, result json, failures integer);
create type step_begin as (step integer, kind text, name text, path text, attempt integer, failures integer, request json);
create type model_call as (
  step integer, attempt integer, model_provider_id uuid, model text, outcome text, failure text, started_at timestamptz,
  prompt_tokens bigint, completion_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint, reasoning_tokens bigint,
  prompt_price numeric, completion_price numeric, cache_read_price numeric, cache_write_price numeric, reasoning_price numeric
);
create type flow_progress as (format smallint, frames json, data json, context json, tasks integer, slots integer);
create type run_wait as (waits_for text, wakes_at timestamptz, approval_id uuid);
create type children_change as (taken_slots integer[], takes_all boolean, spawns boolean);
-- Job and parent are given where the end is the whole commit.
create type run_end as (
  failure text, output json, message text, flow_error json, job_id bigint, lease_id bigint, parent_run_id uuid, parent_slot integer,
  is_announced boolean
);
