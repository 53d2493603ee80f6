select u.user_id, u.email, u.display_name, a.joined_at
from org_admins a
join users u on u.tenant_id = a.tenant_id and u.user_id = a.user_id and u.deactivated_at is null
where a.tenant_id = $1
  and a.org_id = $2
  and ($3::uuid is null or a.user_id {{>|<}} $3)
order by a.user_id {{asc|desc}}
limit $4
