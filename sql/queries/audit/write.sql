-- One statement, so one round trip: nothing is written unless the slot is still held.
with held as (
  update audit_writers
  set position = $3, decided_at = $4, allowed_digest = $5, denied_digest = $6,
    leased_until = now() + make_interval(secs => $7)
  where slot = $1 and epoch = $2
  returning slot
), chained as (
  insert into audit_batches
    (slot, outcome, first_position, last_position, row_count, decided_at, digest, previous_digest)
  select held.slot, batch.*
  from held, unnest($8::text[], $9::bigint[], $10::bigint[], $11::integer[], $12::timestamptz[], $13::bytea[], $14::bytea[]) as batch
)
insert into audit_decisions
  (slot, tenant_id, position, decided_at, outcome, id, actor_subject, action, resource, reason,
   stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
   request_id, trace_id, key_id, route, run_id, client_address)
select held.slot, decision.*
from held, unnest($15::uuid[], $16::bigint[], $17::timestamptz[], $18::text[], $19::uuid[],
  $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[],
  $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[], $32::uuid[], $33::text[],
  $34::uuid[], $35::text[], $36::uuid[], $37::text[]) as decision
