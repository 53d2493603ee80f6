-- The id says when: so of each writer the decisions of that moment alone are read, in the order of their index.
select decision.*
from audit_writers w
cross join lateral (
  select id, tenant_id, slot, position, decided_at, outcome, actor_subject, action, resource, reason,
    stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
    request_id, trace_id, key_id, route, run_id, client_address, credential_kind
  from audit_decisions
  where tenant_id = $1 and slot = w.slot and decided_at >= $3 and decided_at < $4 and id = $2
  order by decided_at, position
  limit 1
) decision
limit 1
