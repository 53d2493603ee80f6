select run_update_jobs(done_job => $1, done_lease => $2, removed_jobs => $3, due_jobs => $4) as ended
