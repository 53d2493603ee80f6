-- Completes the job of a run that ended, removes the jobs of runs that ended with it, and makes other jobs due now. In the
-- order of their ids, in which the queue locks jobs too. False: the first job is not under that lease any more.
create function run_update_jobs(done_job bigint, done_lease bigint, removed_jobs bigint[], due_jobs bigint[]) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  one record;
begin
  for one in
    select m.id, m.becomes
    from (
      select done_job, 'done' union all select unnest(removed_jobs), 'removed' union all select unnest(due_jobs), 'due'
    ) m (id, becomes)
    where m.id is not null order by m.id
  loop
    case one.becomes
      when 'done' then
        if not job_done(p_id => one.id, p_lease => done_lease) then
          return false;
        end if;
      when 'removed' then
        perform job_cancel(p_ids => array[one.id]);
      when 'due' then
        perform job_run_now(p_id => one.id);
    end case;
  end loop;
  return true;
end
$$;
