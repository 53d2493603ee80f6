-- The agent that a tool may call, if the project has it: whether it is archived, and whether it has the version that is named.
select a.archived_at is not null as is_archived,
  $4::text is null
    or exists (select from agent_versions v where v.tenant_id = $1 and v.agent_id = a.agent_id and v.version = $4) as has_version
from agents a
where a.tenant_id = $1 and a.project_id = $2 and a.agent_id = $3
