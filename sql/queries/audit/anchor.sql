select slot, outcome, through_position, digest, rows_purged, purged_at, public_key, signature
from audit_anchors where slot = $1 and outcome = $2
