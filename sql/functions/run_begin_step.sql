-- Begins an attempt of a step. Every attempt of a run that is carried on begins here; what limits a step is looked at here.
create function run_begin_step(of_tenant_id uuid, of_run_id uuid, begun step_begin, at timestamptz) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  if begun.attempt = 1 then
    insert into run_steps (tenant_id, run_id, step, kind, name, path, status, attempt, failures, request, started_at,
      format)
    values (of_tenant_id, of_run_id, begun.step, begun.kind, begun.name, begun.path, 'running', 1, begun.failures,
      begun.request, at, case begun.kind when 'guardrail' then 2 else 1 end);
  else
    update run_steps s set status = 'running', attempt = begun.attempt, failures = begun.failures, started_at = at,
      completed_at = null
    where s.tenant_id = of_tenant_id and s.run_id = of_run_id and s.step = begun.step;
  end if;
end
$$;
