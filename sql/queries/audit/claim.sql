-- A slot never goes back in time. A slot whose last time is in the future, because a clock was ahead, is not taken before that
-- time: its new writer would have to record that time instead of its own.
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
