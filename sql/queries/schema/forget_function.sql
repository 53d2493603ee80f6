delete from agent_runtime_functions where name = $1
