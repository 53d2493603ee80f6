select job.payload from runs r join job_jobs job on job.id = r.job_id
where r.tenant_id = $1 and r.run_id = $2
