select digest = $1, version from agent_runtime_function_sets
