select
  current_setting('server_version_num')::int,
  current_setting('server_version'),
  rolsuper or (rolcreaterole and rolcreatedb)
from pg_roles where rolname = current_user
