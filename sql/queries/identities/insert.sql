insert into identities (tenant_id, identity_id, identity_provider_id, subject, user_id, email_then, bound_at, last_used_at, groups_fault)
values ($1, $2, $3, $4, $5, $6, $7, $7, $8)
