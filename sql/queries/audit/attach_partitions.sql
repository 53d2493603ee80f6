select attach_audit_partitions($1)
