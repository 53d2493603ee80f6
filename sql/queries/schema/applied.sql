select name, digest from agent_runtime_migrations
