-- One statement, as `write`, for one decision: arrays of one element would cost a third of it.
with held as (
  update audit_writers
  set position = $3, decided_at = $4, allowed_digest = $5, denied_digest = $6,
    leased_until = now() + make_interval(secs => $7)
  where slot = $1 and epoch = $2
  returning slot
), chained as (
  insert into audit_batches
    (slot, outcome, first_position, last_position, row_count, decided_at, digest, previous_digest)
  select held.slot, $8, $9, $9, 1, $10, $11, $12 from held
)
insert into audit_decisions
  (slot, outcome, position, decided_at, tenant_id, id, actor_subject, action, resource, reason,
   stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
   request_id, trace_id, key_id, route, run_id, client_address,
   credential_kind)
select held.slot, $8, $9, $10, $13, $14, $15, $16, $17, $18,
  $19, $20, $21, $22, $23, $24, $25, $26,
  $27, $28, $29, $30, $31, $32,
  $33
from held
