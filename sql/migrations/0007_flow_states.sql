-- Where a run of a flow stands: one row a run, written in the transaction that begins its step. What the step under way answers
-- is in the journal, not here.
create table flow_states (
  tenant_id uuid not null,
  run_id uuid not null,
  -- The version of the form of `frames`.
  format smallint not null,
  -- The tasks under way, outermost first.
  frames json not null,
  -- What the task under way was given.
  data json not null,
  context json not null,
  -- Tasks entered so far, and slots given to child runs.
  tasks integer not null,
  slots integer not null,
  primary key (tenant_id, run_id)
) partition by range (run_id);
