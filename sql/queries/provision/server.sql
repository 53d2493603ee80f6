select
  current_setting('server_version_num')::int as number,
  current_setting('server_version') as version,
  rolsuper or (rolcreaterole and rolcreatedb) as may_make
from pg_roles where rolname = current_user
