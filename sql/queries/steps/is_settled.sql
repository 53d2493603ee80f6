-- Whether a write of this holder about an attempt of a step was committed although its answer was lost.
select exists (
  select from runs r join run_steps s on s.tenant_id = r.tenant_id and s.run_id = r.run_id
  where r.tenant_id = $1 and r.run_id = $2 and r.lease_epoch = $3
    and s.step = $4 and (s.attempt <> $5 or s.status <> 'running'))
