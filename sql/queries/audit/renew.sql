update audit_writers set leased_until = now() + make_interval(secs => $3) where slot = $1 and epoch = $2
