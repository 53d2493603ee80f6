select drop_audit_partitions(outcome => $1, month => $2)
