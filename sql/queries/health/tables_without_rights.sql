select relname::text
from pg_class
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  and not (
    has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')
    and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete')
  )
order by relname
limit $1
