insert into audit_anchors
  (slot, outcome, through_position, digest, rows_purged, purged_at, public_key, signature)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (slot, outcome) do update
set through_position = excluded.through_position, digest = excluded.digest,
  rows_purged = excluded.rows_purged, purged_at = excluded.purged_at,
  public_key = excluded.public_key, signature = excluded.signature
