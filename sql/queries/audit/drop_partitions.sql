select drop_audit_partitions($1, $2)
