select
  current_setting('server_version_num')::int,
  current_setting('server_version'),
  current_database()::text,
  current_schema()::text,
  current_setting('server_encoding'),
  pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool,
  has_schema_privilege(current_schema(), 'create')
