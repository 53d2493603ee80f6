select name, definition from agent_runtime_functions
