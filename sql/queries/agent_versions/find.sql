select v.agent_id, v.version, v.instructions, v.model_provider_id, v.model, v.parameters, v.limits, v.output_schema, v.overrides, v.guardrails, v.streaming,
  array(select t.tool_id from agent_version_tools t
    where t.tenant_id = v.tenant_id and t.agent_id = v.agent_id and t.version = v.version order by t.position) as tool_ids,
  v.created_by, v.created_at
from agent_versions v
where v.tenant_id = $1 and v.agent_id = $2 and v.version = $3
