select indexrelid::regclass::text
from pg_index i
join pg_class c on c.oid = i.indexrelid
where not i.indisvalid and c.relnamespace not in ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
order by 1
limit $1
