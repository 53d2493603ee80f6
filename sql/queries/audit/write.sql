-- One statement, so one round trip: nothing is written unless the slot is still held. To take apart so many arrays side by
-- side would cost a third of it, so each is asked for its elements. The first one is taken apart: PostgreSQL takes an array
-- that it does not know for ten elements, and keeps the plan. Of a series of as many numbers it would expect a thousand, and
-- plan anew each time, which costs as much as all else. A decision alone is written by `write_one`.
with held as (
  update audit_writers
  set position = $3, decided_at = $4, allowed_digest = $5, denied_digest = $6,
    leased_until = now() + make_interval(secs => $7)
  where slot = $1 and epoch = $2
  returning slot
), chained as (
  insert into audit_batches
    (slot, outcome, first_position, last_position, row_count, decided_at, digest, previous_digest)
  select held.slot, batch.outcome, ($9::bigint[])[n], ($10::bigint[])[n], ($11::integer[])[n], ($12::timestamptz[])[n],
    ($13::bytea[])[n], ($14::bytea[])[n]
  from held, unnest($8::text[]) with ordinality as batch (outcome, n)
)
insert into audit_decisions
  (slot, tenant_id, position, decided_at, outcome, id, actor_subject, action, resource, reason,
   stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
   request_id, trace_id, key_id, route, run_id, client_address,
   credential_kind)
select held.slot, decision.tenant_id, ($16::bigint[])[n], ($17::timestamptz[])[n], ($18::text[])[n], ($19::uuid[])[n],
  ($20::text[])[n], ($21::text[])[n], ($22::text[])[n], ($23::text[])[n], ($24::text[])[n], ($25::text[])[n],
  ($26::text[])[n], ($27::text[])[n], ($28::text[])[n], ($29::text[])[n], ($30::text[])[n], ($31::bigint[])[n],
  ($32::uuid[])[n], ($33::text[])[n], ($34::uuid[])[n], ($35::text[])[n], ($36::uuid[])[n], ($37::text[])[n],
  ($38::text[])[n]
from held, unnest($15::uuid[]) with ordinality as decision (tenant_id, n)
