-- The call of this holder's run is over: the next run in line makes its own.
create function model_call_give_back(
  of_tenant_id uuid, of_model_provider_id uuid, of_run_id uuid, of_epoch bigint, at_once integer, at timestamptz
) returns void
language plpgsql as $$
begin
  perform from model_providers p
  where p.tenant_id = of_tenant_id and p.model_provider_id = of_model_provider_id
  for no key update;
  delete from model_call_slots s where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.lease_epoch = of_epoch;
  perform model_call_grant(
    of_tenant_id => of_tenant_id, of_model_provider_id => of_model_provider_id, at_once => at_once, at => at);
end
$$;
