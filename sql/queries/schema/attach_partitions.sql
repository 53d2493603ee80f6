select attach_audit_partitions(today), attach_webhook_partitions(today) from (select (now() at time zone 'UTC')::date) d (today)
