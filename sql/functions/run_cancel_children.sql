-- Cancels the runs below one that is held and is about to end so: see run_cancel_descendants. Locks the run's row first.
-- Nothing where the holder's commit will not be written (see run_write).
create function run_cancel_children(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, is_cancelled boolean, at timestamptz, most integer,
  asks_alone boolean default false,
  out has_more boolean, out removed_jobs bigint[], out due_jobs bigint[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
    and (r.cancel_requested_at is not null) = is_cancelled
  for no key update;
  if not found then
    has_more := false;
    removed_jobs := '{}';
    due_jobs := '{}';
    return;
  end if;
  select b.has_more, b.removed_jobs, b.due_jobs into has_more, removed_jobs, due_jobs
  from run_cancel_descendants(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, most => most,
    asks_alone => asks_alone) b;
end
$$;
