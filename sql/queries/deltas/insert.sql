-- Only of who holds the run, and of the attempt that is under way.
insert into run_deltas (tenant_id, run_id, step, attempt, text_offset, text)
select d.tenant_id, d.run_id, d.step, d.attempt, d.text_offset, d.text
from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::integer[], $5::integer[], $6::integer[], $7::text[])
  d (tenant_id, run_id, lease_epoch, step, attempt, text_offset, text)
join runs r on r.tenant_id = d.tenant_id and r.run_id = d.run_id and r.lease_epoch = d.lease_epoch and r.status = 'running'
join run_steps s on s.tenant_id = d.tenant_id and s.run_id = d.run_id and s.step = d.step and s.attempt = d.attempt
  and s.status = 'running'
on conflict do nothing
