delete from audit_decisions
where outcome = $1 and slot = $2 and position <= $3 and decided_at <= $4
