-- That it is there says all: no program serves the database until its restore has ended.
create table if not exists agent_runtime_restore ()
