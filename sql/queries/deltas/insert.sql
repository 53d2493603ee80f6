-- Only of who holds the run, and of the attempt that is under way. $8: which pieces are of the reasoning.
with piece as (
  select d.tenant_id, d.run_id, d.step, d.attempt, d.text_offset, d.text, d.is_reasoning
  from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::integer[], $5::integer[], $6::integer[], $7::text[], $8::boolean[])
    d (tenant_id, run_id, lease_epoch, step, attempt, text_offset, text, is_reasoning)
  join runs r on r.tenant_id = d.tenant_id and r.run_id = d.run_id and r.lease_epoch = d.lease_epoch and r.status = 'running'
  join run_steps s on s.tenant_id = d.tenant_id and s.run_id = d.run_id and s.step = d.step and s.attempt = d.attempt
    and s.status = 'running'
), reasoning as (
  insert into run_reasoning (tenant_id, run_id, step, attempt, text_offset, text)
  select tenant_id, run_id, step, attempt, text_offset, text from piece where is_reasoning
  on conflict do nothing
)
insert into run_deltas (tenant_id, run_id, step, attempt, text_offset, text)
select tenant_id, run_id, step, attempt, text_offset, text from piece where not is_reasoning
on conflict do nothing
