alter table conversations
  add column erasure_requested_at timestamptz,
  add column erased_at timestamptz;

alter table runs add column payload_erased_at timestamptz;

-- The event that tells webhooks of the run's failure, and why it failed.
alter table run_payloads add column webhook_event_id uuid;

create or replace view run_rows as
select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_slot, root_run_id,
  dry_run, agent_id, agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at,
  started_at, completed_at, waiting_for, wake_at, parked_at, parked_ms, lease_epoch, last_seq,
  calls, cost_usd::float8 as cost_usd, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens, payload_erased_at
from runs;
