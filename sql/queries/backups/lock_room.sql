-- The least that PostgreSQL reserves memory for.
select
  current_setting('max_locks_per_transaction')::bigint as each,
  current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint as holders
