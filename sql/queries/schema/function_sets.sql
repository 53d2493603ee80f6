select digest = $1 as is_own, version from agent_runtime_function_sets
