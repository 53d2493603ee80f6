-- The newest position given out, and the oldest transaction that is under way: positions that ended ones took are settled.
select case when s.is_called then s.last_value else 0 end as position,
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest_transaction
from approval_log_position s
