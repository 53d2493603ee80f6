update identities
set last_used_at = $3, groups_fault = $4
where tenant_id = $1 and identity_id = $2
