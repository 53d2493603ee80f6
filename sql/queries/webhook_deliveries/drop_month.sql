select drop_webhook_month($1)
