-- Cancels a run and all runs below it. A run that nobody holds ends at once. A run that is held, or has more than `most`
-- runs under way below it, is asked to end: its job is due, and its holder ends it. `has_more`: call this again. If nobody
-- does, the run's holder cancels the rest. A parent that waits for the run is woken.
create function run_cancel(
  of_tenant_id uuid, of_run_id uuid, at timestamptz, most integer,
  out became text, out has_more boolean
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  of_parent_run_id uuid;
  parent record;
  below record;
  what record;
begin
  select r.parent_run_id into of_parent_run_id from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.parent_slot is not null;
  select p.status, p.waiting_for, p.job_id into parent from runs p
  where p.tenant_id = of_tenant_id and p.run_id = of_parent_run_id for share;
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.completed_at is null for no key update;
  if not found then
    became := 'finished';
    has_more := false;
    return;
  end if;
  below := run_cancel_descendants(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, most => most);
  what := run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, ends => not below.has_more);
  became := what.became;
  has_more := below.has_more;
  perform run_update_jobs(done_job => null, done_lease => null,
    removed_jobs => below.removed_jobs || case when became = 'cancelled' then what.job end,
    due_jobs => below.due_jobs || case when became = 'asked' then what.job end
      || case when became = 'cancelled' and parent.status = 'waiting' and parent.waiting_for = 'children' then parent.job_id end);
end
$$;
