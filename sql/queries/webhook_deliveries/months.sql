-- The months that have a partition, from the partitions' names.
select to_date(right(child.relname, 6), 'YYYYMM') as month
from pg_inherits
join pg_class as child on child.oid = pg_inherits.inhrelid
where pg_inherits.inhparent = 'webhook_deliveries'::regclass
order by 1
