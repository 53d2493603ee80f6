update users
set deactivated_at = $3
where tenant_id = $1 and user_id = $2
returning user_id, kind, email, display_name, tenant_role, created_by, created_at, deactivated_at
