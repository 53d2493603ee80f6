select not exists (
  select from pg_class c
  where c.relnamespace = current_schema()::regnamespace
    and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
    and c.relname <> 'agent_runtime_restore'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
)
