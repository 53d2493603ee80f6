-- The process makes it a lock of this connection's own.
select pg_try_advisory_xact_lock($1, pg_backend_pid()), pg_backend_pid() as process,
  current_schema()::text as schema
