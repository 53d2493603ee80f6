-- What a run has not seen of its children, and whether one gave no answer, is found without reading those that it has seen.
create index run_children_unseen on run_children (tenant_id, parent_run_id, slot) where not seen;
create index run_children_failed on run_children (tenant_id, parent_run_id, slot) where state in ('failed', 'cancelled');

-- A run of a flow that failed before its first step has an error and no state.
alter table flow_states
  alter column format drop not null,
  alter column frames drop not null,
  alter column data drop not null,
  alter column context drop not null,
  alter column tasks drop not null,
  alter column slots drop not null;
-- Rows from before say the same with JSON nulls. They stay, and old programs write more of them, until the functions are replaced.
-- What is there is not checked, so that the table is not held while it is read.
alter table flow_states add constraint flow_states_state_is_whole
  check (num_nonnulls(format, frames, data, context, tasks, slots) in (0, 6)) not valid;
