-- By its own tables: that of its migrations is one that other applications have as well.
select count(*) = 3
from pg_class
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  and relname in ('authorization_model', 'store', 'tuple')
