-- Lets as many of the runs that wait for a call of a model provider make it as there are calls free, the first that asked
-- first, and makes those due that are parked. The caller holds the provider's row.
create function model_call_grant(of_tenant_id uuid, of_model_provider_id uuid, at_once integer, at timestamptz) returns void
language plpgsql as $$
declare
  next record;
  run record;
begin
  -- What a run that has ended left behind. A run that was cancelled gives nothing back itself.
  delete from model_call_slots s
  where s.tenant_id = of_tenant_id and s.model_provider_id = of_model_provider_id and s.granted_at is not null
    and not exists (
      select from runs r
      where r.tenant_id = s.tenant_id and r.run_id = s.run_id and r.status in ('queued', 'running', 'waiting'));
  while (
    select count(*) < at_once from model_call_slots s
    where s.tenant_id = of_tenant_id and s.model_provider_id = of_model_provider_id and s.granted_at is not null)
  loop
    select s.run_id into next from model_call_slots s
    where s.tenant_id = of_tenant_id and s.model_provider_id = of_model_provider_id and s.granted_at is null
    order by s.asked_at, s.run_id
    limit 1;
    exit when not found;
    -- A run is parked under its row's lock. So what is not parked yet sees the grant.
    select r.status, r.waiting_for, r.job_id into run from runs r
    where r.tenant_id = of_tenant_id and r.run_id = next.run_id and r.status in ('queued', 'running', 'waiting')
    for share;
    if not found then
      delete from model_call_slots s where s.tenant_id = of_tenant_id and s.run_id = next.run_id;
      continue;
    end if;
    update model_call_slots s set granted_at = at where s.tenant_id = of_tenant_id and s.run_id = next.run_id;
    if run.status = 'waiting' and run.waiting_for = 'model' then
      perform job_run_now(p_id => run.job_id);
    end if;
  end loop;
end
$$;
