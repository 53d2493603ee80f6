update enrolments
set ended_at = $3
where tenant_id = $1 and created_by = $2 and ended_at is null
