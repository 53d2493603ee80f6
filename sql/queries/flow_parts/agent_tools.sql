-- The tools of a version of an agent.
select agent_tools(of_tenant_id => v.tenant_id, of_agent_id => v.agent_id, of_version => v.version) as tools
from agent_versions v
where v.tenant_id = $1 and v.agent_id = $2 and v.version = $3
