select token_sign_in, session_idle_minutes, session_hours, changed_by, changed_at
from sign_in_settings
where tenant_id = $1
