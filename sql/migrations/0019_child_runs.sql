-- What a run has not seen of its children, and whether one has failed, is found without reading those that it has seen.
create index run_children_unseen on run_children (tenant_id, parent_run_id, slot) where not seen;
create index run_children_failed on run_children (tenant_id, parent_run_id, slot) where state = 'failed';

-- A run of a flow that failed before its first step has an error and no state.
alter table flow_states
  alter column format drop not null,
  alter column frames drop not null,
  alter column data drop not null,
  alter column context drop not null,
  alter column tasks drop not null,
  alter column slots drop not null;
update flow_states set format = null, frames = null, data = null, context = null, tasks = null, slots = null
where frames::text = 'null';
alter table flow_states add constraint flow_states_state_is_whole
  check (num_nonnulls(format, frames, data, context, tasks, slots) in (0, 6));
