delete from audit_batches
where outcome = $1 and slot = $2 and last_position <= $3 and decided_at <= $4
