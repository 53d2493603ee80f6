select
  current_setting('server_version_num')::int as number,
  current_setting('server_version') as version,
  pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as is_read_only,
  current_setting('server_encoding') as encoding,
  has_schema_privilege(current_schema(), 'create') as may_create,
  current_user::text as role,
  current_database()::text as database
