select attach_audit_partitions(today => $1)
