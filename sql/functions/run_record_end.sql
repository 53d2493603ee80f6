-- Records the end of a child, and what it used, on its row among its parent's children, unseen by the parent. The caller
-- has locked the parent's row, or holds a share of it, and has ended the child.
create function run_record_end(of_tenant_id uuid, of_parent_run_id uuid, of_slot integer, of_run_id uuid) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update run_children c set
    state = r.status, calls = r.calls, cost_usd = r.cost_usd, prompt_tokens = r.prompt_tokens,
    completion_tokens = r.completion_tokens, cache_read_tokens = r.cache_read_tokens,
    cache_write_tokens = r.cache_write_tokens, reasoning_tokens = r.reasoning_tokens
  from runs r
  where c.tenant_id = of_tenant_id and c.parent_run_id = of_parent_run_id and c.slot = of_slot and c.state = 'started'
    and r.tenant_id = of_tenant_id and r.run_id = of_run_id;
end
$$;
