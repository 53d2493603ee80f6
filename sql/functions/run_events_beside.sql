-- How many events of a run, after the first `counted` of its holders, others than a holder wrote: those of escalations and of
-- people who were not assigned. The event of a cancel is none of either. No further than the event `until`, if there is one.
create function run_events_beside(of_tenant_id uuid, of_run_id uuid, counted bigint, until bigint) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select count(*) from run_events e
    where e.tenant_id = of_tenant_id and e.run_id = of_run_id and e.seq > counted and e.seq <= coalesce(until, e.seq)
      and e.kind in ('approval.escalated', 'approval.unassigned')
      and (e.seq > counted + 1 or not exists (
        select from run_events c
        where c.tenant_id = of_tenant_id and c.run_id = of_run_id and c.seq <= counted and c.kind = 'run.cancelRequested'
      ))
  );
end
$$;
