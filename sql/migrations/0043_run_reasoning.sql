-- Reasoning that is being streamed, as run_deltas has text, with positions of the same sequence. A table of its own: earlier
-- programs show whatever stands in run_deltas as the answer.
create unlogged table run_reasoning (
  tenant_id uuid not null,
  run_id uuid not null,
  step integer not null,
  attempt integer not null,
  text_offset integer not null,
  text text not null,
  position bigint not null default nextval('run_delta_position'),
  primary key (tenant_id, run_id, step, attempt, text_offset)
);
create index run_reasoning_position on run_reasoning (position);
