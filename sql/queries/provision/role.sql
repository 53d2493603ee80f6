select rolcanlogin as can_login, rolsuper as is_superuser from pg_roles where rolname = $1
