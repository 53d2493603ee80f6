select to_regclass('agent_runtime_migrations') is not null
