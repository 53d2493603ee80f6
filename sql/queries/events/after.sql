-- A page ends after $4 events, or with the one that takes it past $5 bytes. `more` says whether any follows the event.
select seq, kind, data, created_at, more
from run_events_after(of_tenant_id => $1, of_run_id => $2, after_seq => $3, max_events => $4, max_bytes => $5)
