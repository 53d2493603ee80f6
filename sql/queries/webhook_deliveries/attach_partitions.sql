select attach_webhook_partitions(today => $1)
