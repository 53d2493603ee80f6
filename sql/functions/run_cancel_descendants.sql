-- Cancels the runs below one whose row the caller has locked, if they are at most `most`: runs that nobody holds end, the
-- farthest first, so that each takes what its children used; the others are asked to end. With more of them nothing is
-- done, and `has_more` is true. Returns the jobs to remove, the jobs to run now, and the runs that ended.
--
-- Locks level by level, each level by id (`locks-from-root-to-leaf`). A run that is locked here or was asked before begins
-- no more children, and each level is read after the level above was locked: no run is missed.
create function run_cancel_descendants(
  of_tenant_id uuid, of_run_id uuid, at timestamptz, most integer,
  out has_more boolean, out removed_jobs bigint[], out due_jobs bigint[], out ended uuid[]
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
  ended := '{}';
  loop
    level := array(
      select c.child_run_id from run_children c
      where c.tenant_id = of_tenant_id and c.parent_run_id = any (level) and c.state = 'started' and not c.seen
      limit most + 1
    );
    exit when cardinality(level) = 0;
    locked := array(
      select r.run_id from runs r
      where r.tenant_id = of_tenant_id and r.run_id = any (level) and r.completed_at is null
        and not (r.status = 'running' and r.cancel_requested_at is not null)
      order by r.run_id limit most - cardinality(found_ids) + 1
      for no key update
    );
    found_ids := found_ids || locked;
    has_more := cardinality(level) > most or cardinality(found_ids) > most;
    if has_more then
      return;
    end if;
  end loop;
  for i in reverse cardinality(found_ids) .. 1 loop
    what := run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => found_ids[i], at => at, ends => true);
    if what.became = 'cancelled' then
      removed_jobs := removed_jobs || what.job;
      ended := ended || found_ids[i];
    elsif what.job is not null then
      due_jobs := due_jobs || what.job;
    end if;
  end loop;
end
$$;
