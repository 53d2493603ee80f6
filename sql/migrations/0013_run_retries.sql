-- Failed runs that are taken up again.

-- The failed run that this one takes up.
alter table runs add column retry_of uuid;

create or replace view run_rows as
select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_slot, root_run_id,
  dry_run, agent_id, agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at,
  started_at, completed_at, waiting_for, wake_at, parked_at, parked_ms, lease_epoch, last_seq,
  calls, cost_usd::float8 as cost_usd, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens, payload_erased_at, labels, retry_of
from runs;

-- Of a failed run, the newest one that takes it up: one at a time does. A finished run's own row does not change.
create table run_retries (
  tenant_id uuid not null,
  run_id uuid not null,
  retried_by uuid not null,
  primary key (tenant_id, run_id)
);
