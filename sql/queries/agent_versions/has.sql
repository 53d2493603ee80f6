select 1
from agent_versions
where tenant_id = $1 and agent_id = $2 and version = $3
