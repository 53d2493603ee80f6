drop table if exists agent_runtime_restore
