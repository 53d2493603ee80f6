delete from tools
where tenant_id = $1 and tool_id = $2
