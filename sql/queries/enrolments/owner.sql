select tenant_id, user_id
from enrolments
where digest = $1 and ended_at is null
