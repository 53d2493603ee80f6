select to_regclass('schema_migrations') is not null
