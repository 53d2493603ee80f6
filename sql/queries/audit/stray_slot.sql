select slot, position, decided_at, outcome from (
  (select slot, first_position as position, decided_at, outcome from audit_batches
   where slot not in (select slot from audit_writers) limit 1)
  union all
  (select slot, position, decided_at, outcome from audit_decisions
   where slot not in (select slot from audit_writers) limit 1)
) as stray limit 1
