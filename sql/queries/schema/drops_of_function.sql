select format('drop function %s', p.oid::regprocedure) from pg_proc p
where p.pronamespace = current_schema()::regnamespace and p.proname = $1
