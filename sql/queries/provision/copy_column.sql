-- Copying plans nothing and calls nothing: a superuser reads another role's table so, whatever that one
-- made of it. A view is not read.
select pg_catalog.format('copy %I.%I (%I) to stdout', n.nspname, c.relname, a.attname)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid
where c.relname = $1::text
  and a.attname = $2::text
  and c.relkind = 'r'
  and not c.relrowsecurity
  and a.atttypid in ('pg_catalog.uuid'::regtype, 'pg_catalog.int4'::regtype)
  and n.nspname not in ('pg_catalog', 'information_schema')
order by n.nspname
