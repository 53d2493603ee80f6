select
  current_setting('server_version_num')::int as server,
  current_setting('server_version') as server_text,
  current_database()::text as database,
  current_schema()::text as schema,
  current_setting('server_encoding') as encoding,
  pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool as read_only,
  has_schema_privilege(current_schema(), 'create') as may_create
