-- The caller holds the agent's row lock and says whether this version is its latest.
with agent as (
  update agents
  set last_position = last_position + 1, updated_at = $11,
    latest_version = case when $12 then $3 else latest_version end
  where tenant_id = $1 and agent_id = $2
  returning last_position
), made as (
  insert into agent_versions (tenant_id, agent_id, version, position, instructions, model_provider_id, model,
    parameters, limits, created_by, created_at, output_schema, overrides, guardrails, streaming)
  select $1, $2, $3, last_position, $4, $5, $6, $7, $8, $10, $11, $13, $14, $15, $16 from agent
)
insert into agent_version_tools (tenant_id, agent_id, version, position, tool_id)
select $1, $2, $3, tool.position, tool.tool_id
from unnest($9::uuid[]) with ordinality as tool (tool_id, position)
