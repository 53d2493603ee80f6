-- Of each slot: its last batch before then, and the decisions up to it.
select distinct on (slot) slot, last_position as through_position, digest,
  (sum(row_count) over (partition by slot))::bigint as rows
from audit_batches
where outcome = $1 and decided_at < $2
order by slot, first_position desc
