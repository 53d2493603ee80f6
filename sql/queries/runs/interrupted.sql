-- Of the runs that this process carries on, those that it should stop: cancelled, themselves or their roots, or taken over by
-- another.
select r.run_id, held.lease_epoch from runs r
join unnest($1::uuid[], $2::uuid[], $3::bigint[]) held (tenant_id, run_id, lease_epoch)
  on held.tenant_id = r.tenant_id and held.run_id = r.run_id
where r.cancel_requested_at is not null or r.status <> 'running' or r.lease_epoch <> held.lease_epoch
  or r.parent_run_id is not null and exists (
    select from runs root
    where root.tenant_id = r.tenant_id and root.run_id = r.root_run_id and root.cancel_requested_at is not null)
