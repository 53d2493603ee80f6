-- Rows without a database are the server's own processes.
select
  current_setting('max_connections')::int as max,
  current_setting('superuser_reserved_connections')::int
    + coalesce(current_setting('reserved_connections', true)::int, 0) as reserved,
  (select count(*) from pg_stat_activity where datid is not null and pid <> pg_backend_pid())::int as open,
  (
    select count(*) from pg_stat_activity
    where datname = current_database() and usename = current_user
      and application_name = 'agent-runtime' and pid <> pg_backend_pid()
  )::int as ours,
  (select rolconnlimit from pg_roles where rolname = current_user) as role_max
