-- How often a run's job had been claimed before the claim whose holder made the newest progress: ended a step, or parked the
-- run. The job counts its claims (`job_jobs.attempt`), but for those that were handed back, so the difference is how many
-- holders have died since, one after the other.
alter table runs add column attempts_before_progress integer not null default 0;

-- So far the job counted other failures, too: what it has counted is no death. A fresh database has no jobs yet.
do $$
begin
  if to_regclass('job_jobs') is not null then
    update runs r set attempts_before_progress = j.attempt
    from job_jobs j
    where j.id = r.job_id and j.attempt > 0 and r.completed_at is null;
  end if;
end
$$;
