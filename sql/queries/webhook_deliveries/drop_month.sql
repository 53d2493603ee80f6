select drop_webhook_month(month => $1) as dropped
