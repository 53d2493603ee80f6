select kind, user_id, token_id, at
from approval_log
where tenant_id = $1 and approval_id = $2
order by position
