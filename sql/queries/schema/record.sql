insert into schema_migrations (name, digest) values ($1, $2)
