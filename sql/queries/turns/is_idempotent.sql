-- A call that runs an agent or a flow has no effect of its own: the run that it begins is begun in the transaction of its step.
select t.idempotent or t.target <> 'http' as idempotent
from agent_version_tools g join tools t on t.tenant_id = g.tenant_id and t.tool_id = g.tool_id
where g.tenant_id = $1 and g.agent_id = $2 and g.version = $3 and t.name = $4
