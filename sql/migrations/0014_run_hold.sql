-- While it has a row, no run is carried on, until an operator releases them.
create table run_hold (
  is_held boolean primary key default true check (is_held),
  since timestamptz not null
);
