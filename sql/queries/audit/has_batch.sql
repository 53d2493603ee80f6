select exists (
  select from audit_batches
  where slot = $1 and outcome = $2 and first_position = $3 and decided_at = $4 and digest = $5
)
