-- Cancels the runs below one that is held and is about to end so: see run_cancel_descendants. Locks the run's row first.
-- Nothing where the holder's commit will not be written (see run_commit). More than `most` of them are cancelled in batches
-- before: see run_cancel_batch. Earlier programs call this for these too, with `asks_alone`, as long as `has_more` is true.
create function run_cancel_children(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, is_cancelled boolean, at timestamptz, most integer,
  asks_alone boolean default false,
  out has_more boolean, out removed_jobs bigint[], out due_jobs bigint[], out ended uuid[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  is_many boolean := run_has_many_below(of_tenant_id => of_tenant_id, of_run_id => of_run_id, most => most);
begin
  has_more := false;
  removed_jobs := '{}';
  due_jobs := '{}';
  ended := '{}';
  if is_many then
    select b.has_more, b.ended into has_more, ended
    from run_cancel_batch(of_tenant_id => of_tenant_id, of_run_id => of_run_id, of_epoch => of_epoch,
      is_cancelled => is_cancelled, at => at, most => most) b;
    return;
  end if;
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
    and (r.cancel_requested_at is not null) = is_cancelled
  for no key update;
  if not found or asks_alone then
    return;
  end if;
  select b.has_more, b.removed_jobs, b.due_jobs, b.ended into has_more, removed_jobs, due_jobs, ended
  from run_cancel_descendants(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, most => most) b;
end
$$;
