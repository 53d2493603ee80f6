select attach_run_partitions($1)
