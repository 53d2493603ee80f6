-- Of these the server's version may not know each.
select set_config(name, '0', true)
from pg_settings
where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
