-- How many steps a run has had, and what its model calls used, children that it has taken included. Volatile, and so it
-- sees what an earlier part of the statement that calls it has written.
create function run_totals(of_tenant_id uuid, of_run_id uuid) returns json
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select json_build_object(
      'steps', coalesce(
        (select max(s.step) from run_steps s where s.tenant_id = of_tenant_id and s.run_id = of_run_id), 0),
      'usage', json_build_object('calls', r.calls, 'costUsd', r.cost_usd::float8, 'tokens', json_build_object(
        'prompt', r.prompt_tokens, 'completion', r.completion_tokens, 'cacheRead', r.cache_read_tokens,
        'cacheWrite', r.cache_write_tokens, 'reasoning', r.reasoning_tokens)))
    from runs r where r.tenant_id = of_tenant_id and r.run_id = of_run_id
  );
end
$$;
