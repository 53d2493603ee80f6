-- Cancels some of the runs below one that is held and is about to end: at most `most` runs, of those that are farthest from
-- it. A run that nobody holds ends here; the others are asked to end, and their holders end what is below them. `has_more`:
-- call this again, in a transaction of its own. Nothing where the holder's commit will not be written (see run_commit).
-- Returns the runs that ended.
--
-- The way down reads a part of each level and locks nothing: whatever the size of the tree, a batch reads `most` runs of
-- each level. Then the run itself is locked, the parents, and the runs that end (`locks-from-root-to-leaf`). A run that has
-- begun children meanwhile stays for a later batch.
create function run_cancel_batch(
  of_tenant_id uuid, of_run_id uuid, of_epoch bigint, is_cancelled boolean, at timestamptz, most integer,
  out has_more boolean, out ended uuid[]
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  level uuid[] := array[of_run_id];
  below uuid[];
  has_found boolean := false;
  removed_jobs bigint[] := '{}';
  due_jobs bigint[] := '{}';
  one uuid;
  what record;
begin
  has_more := false;
  ended := '{}';
  loop
    below := array(
      select c.child_run_id from run_children c
      join runs r on r.tenant_id = c.tenant_id and r.run_id = c.child_run_id
      where c.tenant_id = of_tenant_id and c.parent_run_id = any (level) and c.state = 'started' and not c.seen
        and r.completed_at is null and not (r.status = 'running' and r.cancel_requested_at is not null)
      limit most
    );
    exit when cardinality(below) = 0;
    has_found := true;
    level := below;
  end loop;
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id = of_run_id and r.lease_epoch = of_epoch and r.status = 'running'
    and (r.cancel_requested_at is not null) = is_cancelled
  for no key update;
  if not found or not has_found then
    return;
  end if;
  has_more := true;
  perform from runs r
  where r.tenant_id = of_tenant_id and r.run_id <> of_run_id and r.run_id = any (array(
    select distinct s.parent_run_id from runs s where s.tenant_id = of_tenant_id and s.run_id = any (level)))
  order by r.run_id for no key update;
  level := array(
    select r.run_id from runs r
    where r.tenant_id = of_tenant_id and r.run_id = any (level) and r.completed_at is null
    order by r.run_id for no key update
  );
  foreach one in array level loop
    continue when exists (
      select from run_children c
      join runs r on r.tenant_id = c.tenant_id and r.run_id = c.child_run_id
      where c.tenant_id = of_tenant_id and c.parent_run_id = one and c.state = 'started' and not c.seen
        and r.completed_at is null and not (r.status = 'running' and r.cancel_requested_at is not null)
    );
    what := run_cancel_one(of_tenant_id => of_tenant_id, of_run_id => one, at => at, ends => true);
    if what.became = 'cancelled' then
      removed_jobs := removed_jobs || what.job;
      ended := ended || one;
    elsif what.job is not null then
      due_jobs := due_jobs || what.job;
    end if;
  end loop;
  perform run_update_jobs(done_job => null, done_lease => null, removed_jobs => removed_jobs, due_jobs => due_jobs);
end
$$;
