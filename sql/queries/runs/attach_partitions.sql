select attach_run_partitions(today => $1)
