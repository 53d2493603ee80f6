-- Closes the approvals that a run waits for, because the run ends. The caller has locked the run's row. One whose time is over
-- was shown as expired already, and stays so.
create function approval_void(of_tenant_id uuid, of_run_id uuid) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  with closed as (
    update approvals a set
      status = case when a.expires_at <= clock_timestamp() then 'expired' else 'voided' end, closed_at = clock_timestamp()
    where a.tenant_id = of_tenant_id and a.run_id = of_run_id and a.status = 'waiting'
    returning a.approval_id, a.status, a.closed_at
  )
  insert into approval_log (tenant_id, approval_id, kind, at)
  select of_tenant_id, c.approval_id, c.status, c.closed_at from closed c;
end
$$;
