-- The schema as text, a statement a row: tables with their constraints and indexes, views, sequences, composite types, functions by their
-- signature. Partitions of a month are left out: they come and go.
with relation as (
  select c.oid, c.relname, c.relkind, c.relpersistence, c.relispartition, c.reloptions, c.relpartbound,
    pg_get_partkeydef(c.oid) as partition_key
  from pg_class c
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'S', 'c')
    and not (c.relispartition and c.relkind = 'r')
), part as (
  select a.attrelid as oid, 1 as kind, null::text as place,
    format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) || case when a.attnotnull then ' not null' else '' end
      || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as line, a.attnum as number
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attnum > 0 and not a.attisdropped
  union all
  select k.conrelid, 2, strpos('pucfx', k.contype::text) || k.conname,
    format('constraint %I %s', k.conname, pg_get_constraintdef(k.oid, true)), 0
  from pg_constraint k
  where k.contype in ('p', 'u', 'f', 'c', 'x')
), statement as (
  select 1 as kind, r.relname::text as place,
    case r.relkind
      when 'S' then format('create sequence %I;', r.relname)
      when 'c' then format(E'create type %I as (\n%s\n);', r.relname, (
        select string_agg('  ' || p.line, E',\n' order by p.number) from part p where p.oid = r.oid))
      -- Of a view of one table, PostgreSQL before 16 writes the table's name before each column.
      when 'v' then format(E'create view %I as\n%s', r.relname, (
        select coalesce(regexp_replace(v.text, '\m' || substring(v.text from 'FROM (\w+);$') || '\.', '', 'g'), v.text)
        from pg_get_viewdef(r.oid, true) v (text)))
      else format('create %stable %I', case r.relpersistence when 'u' then 'unlogged ' else '' end, r.relname)
        || case when r.relispartition
          then (select format(' partition of %s ', i.inhparent::regclass) from pg_inherits i where i.inhrelid = r.oid)
            || pg_get_expr(r.relpartbound, r.oid)
          else (
            select format(E' (\n%s\n)', string_agg('  ' || p.line, E',\n' order by p.kind, p.number, p.place collate "C"))
            from part p where p.oid = r.oid
          ) end
        || coalesce(' partition by ' || r.partition_key, '')
        || coalesce(' with (' || array_to_string(r.reloptions, ', ') || ')', '')
        || ';'
        || coalesce((
          select string_agg(
            format(E'\n%s;', replace(pg_get_indexdef(i.indexrelid), format(' ON %I.', current_schema()), ' ON ')),
            '' order by i.indexrelid::regclass::text collate "C"
          )
          from pg_index i
          where i.indrelid = r.oid and not r.relispartition
            and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
        ), '')
    end as text
  from relation r
  union all
  select 2, p.oid::regprocedure::text,
    format(E'-- function %s (\n--   %s\n-- ) returns %s', p.proname,
      replace(pg_get_function_arguments(p.oid), ', ', E',\n--   '), pg_get_function_result(p.oid))
  from pg_proc p where p.pronamespace = current_schema()::regnamespace
)
select text from statement order by kind, place collate "C"
