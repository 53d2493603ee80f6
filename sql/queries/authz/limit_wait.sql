-- For this transaction, and never longer than the connection's own limit.
select set_config(
  'lock_timeout',
  greatest(1, least($1, (extract(epoch from current_setting('lock_timeout')::interval) * 1000)::bigint))::text,
  true
)
