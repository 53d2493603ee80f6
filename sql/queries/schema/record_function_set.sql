insert into agent_runtime_function_sets (digest, version) values ($1, $2)
