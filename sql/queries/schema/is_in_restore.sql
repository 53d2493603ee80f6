select to_regclass('agent_runtime_restore') is not null
