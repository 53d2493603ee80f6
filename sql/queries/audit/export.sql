select id, tenant_id, slot, position, decided_at, outcome, actor_subject, action, resource, reason,
  stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
  request_id, trace_id, key_id, route, run_id, client_address,
  credential_kind
from audit_decisions
where decided_at >= $1 and decided_at < $2 and ($3::uuid is null or tenant_id = $3)
order by decided_at, slot, position
