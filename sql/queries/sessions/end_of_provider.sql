update sessions
set ended_at = $4
where tenant_id = $1 and identity_provider_id = $2 and ($3::uuid is null or user_id = $3) and ended_at is null
returning user_id
