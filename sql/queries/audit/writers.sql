select slot, position, decided_at from audit_writers order by slot
