-- Labels of runs.

-- Null without labels. The runs below a run have its labels.
alter table runs add column labels json;

create or replace view run_rows as
select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_slot, root_run_id,
  dry_run, agent_id, agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at,
  started_at, completed_at, waiting_for, wake_at, parked_at, parked_ms, lease_epoch, last_seq,
  calls, cost_usd::float8 as cost_usd, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens, payload_erased_at, labels
from runs;

-- A row for each label of a run: the order in which a list by label reads, so that its page costs the same whether ten runs
-- have the label or ten million. An index on `runs.labels` has no such order, and would cost each run a write.
create table run_labels (
  tenant_id uuid not null,
  project_id uuid not null,
  key text not null,
  value text not null,
  run_id uuid not null,
  primary key (tenant_id, key, value, project_id, run_id)
);
