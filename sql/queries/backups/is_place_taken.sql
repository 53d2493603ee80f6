select exists (
    select from pg_locks
    where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
      and classid::int8 = $1::int and objid::int8 = $2::int and objsubid = 2 and pid = $2::int
  ) as is_taken,
  current_schema()::text as schema
