select name, digest from schema_migrations
