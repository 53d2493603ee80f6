select id, tenant_id, slot, position, decided_at, outcome, actor_subject, action, resource, reason,
  stage, failing_part, check_user, check_relation, check_object, store_id, model_id, duration_us,
  request_id, trace_id, key_id, route, run_id, client_address,
  credential_kind
from audit_decisions where slot = $1 and outcome = $2
order by position, decided_at
