-- The oldest batches before then, of whichever slot; the last of them is where the purge stops.
select slot, last_position as through_position, digest, decided_at,
  (sum(row_count) over (order by first_position))::bigint as rows
from audit_batches
where outcome = $1 and slot = $2 and decided_at < $3
order by first_position
limit $4
