-- Why a run failed, without data of the run: what may leave the service.

alter table runs add column failure_summary text;

create or replace view run_rows as
select tenant_id, run_id, project_id, flow_id, flow_version, status, origin, parent_run_id, parent_slot, root_run_id,
  dry_run, agent_id, agent_version, conversation_id, via, failure_message, cancel_requested_at, created_by, created_at,
  started_at, completed_at, waiting_for, wake_at, parked_at, parked_ms, lease_epoch, last_seq,
  calls, cost_usd::float8 as cost_usd, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,
  reasoning_tokens, payload_erased_at, labels, retry_of, failure_summary
from runs;

-- Of an approval of a tool call: the earlier call with the same content that may have taken effect.
alter table approval_subjects add column earlier_call json;
