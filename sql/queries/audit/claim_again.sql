-- A new epoch ends whatever the connection before this one may still be doing.
update audit_writers
set epoch = epoch + 1, leased_until = now() + make_interval(secs => $3)
where slot = $1 and epoch = $2
returning slot, epoch, position, decided_at, allowed_digest, denied_digest
