-- Of another role one sees no more than that it is connected.
select pid, coalesce(usename, '?')::text as role, coalesce(nullif(application_name, ''), '?') as name,
  host(client_addr) as address
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and usesysid is not null
  and coalesce(backend_type, 'client backend') = 'client backend'
order by pid
limit 20
