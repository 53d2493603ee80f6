insert into agent_runtime_migrations (name, digest) values ($1, $2)
