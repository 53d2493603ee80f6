-- A slot never goes back in time. One that was written to by a clock that was ahead is left alone
-- until its time has come: whoever took it would record that time instead of its own.
with free as (
  select slot from audit_writers
  where (leased_until is null or leased_until < now()) and decided_at <= now() + interval '1 minute'
  order by slot limit 1
  for update skip locked
)
update audit_writers as writer
set epoch = writer.epoch + 1, leased_until = now() + make_interval(secs => $1)
from free where writer.slot = free.slot
returning writer.slot, writer.epoch, writer.position, writer.decided_at, writer.allowed_digest, writer.denied_digest
