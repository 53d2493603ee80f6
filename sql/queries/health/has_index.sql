select exists (
  select from pg_class
  where relname = $1::text and relkind = 'i' and pg_table_is_visible(oid)
)
