select 1 from schema_migrations where name = $1
