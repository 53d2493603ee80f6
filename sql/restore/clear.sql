-- Removes everything that the schema holds and no extension owns, but for the mark of the restore itself.
do $clear$
declare
  place oid := current_schema()::regnamespace;
  kind text;
  thing text;
begin
  for kind, thing in
    select case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
        when 'f' then 'foreign table' else 'table' end,
      c.oid::regclass::text
    from pg_class c
    where c.relnamespace = place and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and not c.relispartition
      and c.relname <> 'agent_runtime_restore'
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by c.relkind = 'S', c.oid
  loop
    execute format('drop %s if exists %s cascade', kind, thing);
  end loop;
  for thing in
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = place
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  loop
    execute format('drop routine if exists %s cascade', thing);
  end loop;
  for thing in
    select t.oid::regtype::text from pg_type t
    where t.typnamespace = place and t.typtype in ('e', 'd', 'r', 'c')
      and (t.typrelid = 0 or exists (select from pg_class c where c.oid = t.typrelid and c.relkind = 'c'))
      and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
  loop
    execute format('drop type if exists %s cascade', thing);
  end loop;
end $clear$;
