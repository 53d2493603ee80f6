select org_id, name, created_by, created_at, updated_at
from orgs o
where tenant_id = $1
  and ($2::uuid is null or exists (
    select from org_admins a where a.tenant_id = o.tenant_id and a.org_id = o.org_id and a.user_id = $2
  ))
  and ($3::uuid is null or org_id {{>|<}} $3)
order by org_id {{asc|desc}}
limit $4
