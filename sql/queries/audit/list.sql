-- The planner estimates a range between two unknown times as small, and would read the wrong index. So the end of the page is a
-- row. It estimates `number > 0`, which is always true, as a third of the parts, and so keeps one plan for all values.
select decision.id, decision.tenant_id, decision.slot, decision.position, decision.decided_at,
  decision.outcome, decision.actor_subject, decision.action, decision.resource, decision.reason,
  decision.stage, decision.failing_part, decision.check_user, decision.check_relation,
  decision.check_object, decision.store_id, decision.model_id, decision.duration_us,
  decision.request_id, decision.trace_id, decision.key_id, decision.route, decision.run_id,
  decision.client_address, decision.credential_kind, part.number
from unnest($2::integer[], $3::timestamptz[], $4::bigint[], $13::timestamptz[], $14::bigint[]) with ordinality
  as part (slot, low_at, low_position, high_at, high_position, number)
cross join lateral (
  select * from audit_decisions
  where tenant_id = $1 and slot = part.slot
    and {{decided_at >= part.low_at and|}} (decided_at, position) > (part.low_at, part.low_position)
    and {{|decided_at <= part.high_at and}} (decided_at, position) < (part.high_at, part.high_position)
    and {{decided_at >= $5|(decided_at, position) >= ($5, 0::bigint)}}
    and {{(decided_at, position) < ($6, 0::bigint)|decided_at < $6}}
    and ($7::text is null or outcome = $7) and ($8::text is null or action = $8)
    and ($9::text is null or actor_subject = $9) and ($10::text is null or resource = $10) and ($11::uuid is null or run_id = $11)
    and ($15::uuid is null or request_id = $15)
  order by decided_at {{asc|desc}}, position {{asc|desc}}
  limit $12
) as decision
where part.number > 0
order by decision.decided_at {{asc|desc}}, decision.slot {{asc|desc}}, decision.position {{asc|desc}}
limit $12
