select event_id, attempt, body, url, secret_environment, secret_name, previous_environment, previous_name
from webhook_begin_attempt($1, $2, $3, $4, $5, $6, $7)
