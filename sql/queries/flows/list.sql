-- With $5 those that are archived or whose project is, else the others.
select id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
from flows f
where tenant_id = $1
  and (archived_at is not null or exists (
    select from projects p where p.tenant_id = $1 and p.project_id = f.project_id and p.archived_at is not null
  )) = $5
  and ($2::uuid is null or project_id = $2)
  and ($3::uuid is null or id {{>|<}} $3)
  and ($6::text is null or flow_id = $6)
order by id {{asc|desc}}
limit $4
