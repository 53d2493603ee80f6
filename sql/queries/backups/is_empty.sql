select not exists (
  select from pg_class c
  where c.relnamespace = current_schema()::regnamespace
    and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
    and c.relname <> 'agent_runtime_restore'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
) and not exists (
  select from pg_proc p
  where p.pronamespace = current_schema()::regnamespace
    and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
) and not exists (
  select from pg_type t
  where t.typnamespace = current_schema()::regnamespace and t.typtype in ('e', 'd', 'r')
    and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
)
