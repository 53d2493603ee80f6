select user_id from users
where tenant_id = $1 and tenant_role = 'admin' and deactivated_at is null
order by created_at, user_id
limit 1
