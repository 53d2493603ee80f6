select user_id from users
where tenant_id = $1 and tenant_role = 'admin' and deactivated_at is null
  and ($2::uuid is null or user_id = $2)
order by created_at, user_id
limit 1
