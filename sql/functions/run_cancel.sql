-- Cancels a run, and with it the runs below it. A run that nobody holds ends at once, with those below it. A run that is
-- held, or has more than `most` runs under way below it, is asked to end, and nothing below it is touched: its job is due,
-- and its holder ends the runs below it first (see run_cancel_batch). So the caller never waits for a large tree. The runs
-- below a root learn of its cancel from its row. `has_more` is false: earlier programs call this again while it is true. A
-- parent that waits for the run is woken. `ended`: the runs that ended at once.
create function run_cancel(
  of_tenant_id uuid, of_run_id uuid, at timestamptz, most integer,
  out became text, out has_more boolean, out ended uuid[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  of_parent_run_id uuid;
  parent record;
  below record;
  what record;
begin
  has_more := false;
  ended := '{}';
  select r.parent_run_id into of_parent_run_id from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.parent_slot is not null;
  select p.status, p.waiting_for, p.job_id into parent from runs p
  where p.tenant_id = of_tenant_id and p.run_id = of_parent_run_id for share;
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.completed_at is null for no key update;
  if not found then
    became := 'finished';
    return;
  end if;
  if run_has_many_below(of_tenant_id => of_tenant_id, of_run_id => of_run_id, most => most) then
    select true as has_more, '{}'::bigint[] as removed_jobs, '{}'::bigint[] as due_jobs, '{}'::uuid[] as ended into below;
  else
    below := run_cancel_descendants(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, most => most);
  end if;
  what := run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => of_run_id, at => at, ends => not below.has_more);
  became := what.became;
  ended := below.ended;
  if became = 'cancelled' then
    ended := ended || of_run_id;
  end if;
  perform run_update_jobs(done_job => null, done_lease => null,
    removed_jobs => below.removed_jobs || case when became = 'cancelled' then what.job end,
    due_jobs => below.due_jobs || case when became = 'asked' then what.job end
      || case when became = 'cancelled' and parent.status = 'waiting' and parent.waiting_for = 'children' then parent.job_id end);
end
$$;
