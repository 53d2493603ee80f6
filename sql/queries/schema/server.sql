select
  current_setting('server_version_num')::int,
  current_setting('server_version'),
  pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool,
  current_setting('server_encoding'),
  has_schema_privilege(current_schema(), 'create'),
  current_user::text,
  current_database()::text
