select place, event_id, attempt, body, url, secret_environment, secret_name, previous_environment, previous_name
from webhook_begin_attempts($1, $2, $3, $4, $5, $6)
