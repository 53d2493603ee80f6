select slot, position, decided_at, allowed_digest, denied_digest from audit_writers order by slot
