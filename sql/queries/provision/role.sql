select rolcanlogin, rolsuper from pg_roles where rolname = $1
