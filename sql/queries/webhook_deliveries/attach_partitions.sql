select attach_webhook_partitions($1)
