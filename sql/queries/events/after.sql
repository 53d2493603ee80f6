-- A page ends after $4 events, or with the one that takes it past $5 bytes. `more` says whether any follows the event.
select seq, kind, data, created_at, more from run_events_after($1, $2, $3, $4, $5)
