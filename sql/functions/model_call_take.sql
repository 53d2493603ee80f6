-- Asks for one of the calls that a model provider takes at once, for the run of this holder. Whether it may make it now; if
-- not, it is in line.
create function model_call_take(
  of_tenant_id uuid, of_model_provider_id uuid, of_run_id uuid, of_epoch bigint, at_once integer, at timestamptz
) returns boolean
language plpgsql as $$
begin
  perform from model_providers p
  where p.tenant_id = of_tenant_id and p.model_provider_id = of_model_provider_id
  for no key update;
  insert into model_call_slots as s (tenant_id, model_provider_id, run_id, lease_epoch, asked_at)
  values (of_tenant_id, of_model_provider_id, of_run_id, of_epoch, at)
  on conflict (tenant_id, run_id) do update set lease_epoch = greatest(s.lease_epoch, excluded.lease_epoch);
  perform model_call_grant(
    of_tenant_id => of_tenant_id, of_model_provider_id => of_model_provider_id, at_once => at_once, at => at);
  return exists (
    select from model_call_slots s
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.granted_at is not null);
end
$$;
