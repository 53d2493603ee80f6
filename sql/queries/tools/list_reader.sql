select tool_id, project_id, name, description, arguments_schema, url, timeout_ms, idempotent, secret_headers, signing_secret,
  approval, target, agent_id, agent_version, flow_id, flow_version, dry_run, created_by, created_at
from (
  select distinct project_id as readable_id from project_ways where tenant_id = $1 and user_id = $2
) way
cross join lateral (
  select *
  from tools
  where tenant_id = $1 and project_id = way.readable_id
    and tool_id {{>|<}}
      coalesce($3, '{{00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff}}'::uuid)
  order by tool_id {{asc|desc}}
  limit $4
) one
order by tool_id {{asc|desc}}
limit $4
