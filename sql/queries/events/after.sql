select seq, kind, data, created_at from run_events
where tenant_id = $1 and run_id = $2 and seq > $3 order by seq limit $4
