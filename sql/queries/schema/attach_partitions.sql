select attach_audit_partitions(today => d.today), attach_webhook_partitions(today => d.today)
from (select (now() at time zone 'UTC')::date) d (today)
