select 1 from agent_runtime_migrations where name = $1
