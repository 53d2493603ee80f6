select u.user_id, u.email, u.display_name, array_agg(r.role order by r.role) as roles
from reviewers r
join users u on u.tenant_id = r.tenant_id and u.user_id = r.user_id
where r.tenant_id = $1 and r.user_id = $2
group by u.user_id, u.email, u.display_name
