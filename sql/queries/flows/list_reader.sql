-- As flows/list, of the projects that the reader has a way into.
select id, project_id, flow_id, title, description, latest_version, live_version, created_by, created_at, updated_at, archived_at
from (
  select distinct w.project_id as readable_id, p.archived_at is not null as is_archived
  from project_ways w
  join projects p on p.tenant_id = w.tenant_id and p.project_id = w.project_id
  where w.tenant_id = $1 and w.user_id = $2
) way
cross join lateral (
  select *
  from flows
  where tenant_id = $1 and project_id = way.readable_id and (archived_at is not null or way.is_archived) = $5
    and id {{>|<}}
      coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
    and ($6::text is null or flow_id = $6)
  order by id {{asc|desc}}
  limit $4
) one
order by id {{asc|desc}}
limit $4
