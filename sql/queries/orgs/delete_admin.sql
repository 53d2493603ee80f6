delete from org_admins
where tenant_id = $1 and org_id = $2 and user_id = $3
