update users
set display_name = coalesce($3, display_name), tenant_role = coalesce($4, tenant_role)
where tenant_id = $1 and user_id = $2
returning user_id, kind, email, display_name, tenant_role, created_by, created_at, deactivated_at
