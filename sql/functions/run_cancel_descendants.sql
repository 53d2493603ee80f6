-- Cancels the runs below one whose row the caller has locked: at most `most` of them, the nearest first. If that is all,
-- runs that nobody holds end at once, the farthest first, so that each takes what its children used. Otherwise all of
-- them are asked, and `has_more` is true. With `asks_alone` nothing is done if that is all. Returns the jobs to remove and
-- the jobs to run now.
--
-- Locks level by level, each level by id (`locks-from-root-to-leaf`). A run that is locked here or was asked before begins
-- no more children, and each level is read after the level above was locked: no run is missed.
create function run_cancel_descendants(
  of_tenant_id uuid, of_run_id uuid, at timestamptz, most integer, asks_alone boolean default false,
  out has_more boolean, out removed_jobs bigint[], out due_jobs bigint[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  level uuid[] := array[of_run_id];
  locked uuid[];
  found_ids uuid[] := '{}';
  what record;
begin
  has_more := false;
  removed_jobs := '{}';
  due_jobs := '{}';
  loop
    level := array(
      select c.child_run_id from run_children c
      where c.tenant_id = of_tenant_id and c.parent_run_id = any (level) and c.state = 'started' and not c.seen
    );
    exit when cardinality(level) = 0;
    locked := array(
      select r.run_id from runs r
      where r.tenant_id = of_tenant_id and r.run_id = any (level) and r.completed_at is null and r.cancel_requested_at is null
      order by r.run_id limit most - cardinality(found_ids) + 1
      for no key update
    );
    found_ids := found_ids || locked;
    has_more := cardinality(found_ids) > most;
    exit when has_more;
  end loop;
  if asks_alone and not has_more then
    return;
  end if;
  found_ids := found_ids[1:most];
  for i in reverse cardinality(found_ids) .. 1 loop
    what := run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => found_ids[i], at => at, ends => not has_more);
    continue when what.job is null;
    if what.became = 'cancelled' then
      removed_jobs := removed_jobs || what.job;
    else
      due_jobs := due_jobs || what.job;
    end if;
  end loop;
end
$$;
