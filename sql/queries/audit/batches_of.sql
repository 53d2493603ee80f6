select outcome, first_position, last_position, row_count, decided_at, digest, previous_digest
from audit_batches where slot = $1 and outcome = $2
order by first_position, decided_at
