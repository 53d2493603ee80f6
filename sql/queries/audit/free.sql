update audit_writers set leased_until = null where slot = $1 and epoch = $2
