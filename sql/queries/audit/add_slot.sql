insert into audit_writers (slot, epoch, position, decided_at, allowed_digest, denied_digest, leased_until)
select coalesce(max(slot), 0) + 1, 1, 0, 'epoch', $2, $2, now() + make_interval(secs => $1)
from audit_writers
on conflict (slot) do nothing
returning slot, epoch, position, decided_at, allowed_digest, denied_digest
