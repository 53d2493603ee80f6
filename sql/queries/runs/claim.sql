-- Whoever holds an older epoch can write nothing from here on. A wait ends; how long the run was parked is kept. Says the time
-- of this clock, too, by which waits are due. The run may end in this transaction, so a share of its parent's row is locked
-- before its own (`locks-from-root-to-leaf`): the update counts it, so that it is locked first, and there is one at most.
with parent as materialized (
  select p.run_id from runs p
  where p.tenant_id = $1 and p.run_id = (select r.parent_run_id from runs r where r.tenant_id = $1 and r.run_id = $2)
  for share
), before as materialized (
  select r.waiting_for from run_rows r where r.tenant_id = $1 and r.run_id = $2
), claimed as (
  update run_rows set lease_epoch = lease_epoch + 1, status = 'running', started_at = coalesce(started_at, $3),
    waiting_for = null, wake_at = null, parked_at = null,
    parked_ms = parked_ms + case when parked_at < $3 then extract(epoch from $3 - parked_at) * 1000 else 0 end
  where tenant_id = $1 and run_id = $2 and status in ('queued', 'running', 'waiting') and (select count(*) from parent) < 2
  returning *
)
select c.*, exists (
    select from run_children h where h.tenant_id = c.tenant_id and h.parent_run_id = c.run_id
  ) as has_children, c.parent_run_id is not null and c.cancel_requested_at is null and exists (
    select from runs root
    where root.tenant_id = c.tenant_id and root.run_id = c.root_run_id and root.cancel_requested_at is not null
  ) as is_root_cancelled, (select b.waiting_for from before b) as waited_for, clock_timestamp() as database_now
from claimed c
