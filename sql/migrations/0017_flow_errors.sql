-- The error that a run of a flow failed with, for the run that began it. Before, it stood in place of the state, which a retry
-- goes on from.
alter table flow_states add column error json;
