-- Adds to a run what its ended children used, once for each child: the children in `slots`, or without slots all that the
-- run has not seen. Returns how many. The caller has locked the run's row.
create function run_take_children(of_tenant_id uuid, of_run_id uuid, slots integer[]) returns bigint
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  taken record;
begin
  with seen as (
    update run_children c set seen = true
    where c.tenant_id = of_tenant_id and c.parent_run_id = of_run_id and c.state <> 'started' and not c.seen
      and (slots is null or c.slot = any (slots))
    returning c.calls, c.cost_usd, c.prompt_tokens, c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens,
      c.reasoning_tokens
  )
  select count(*) as children, sum(s.calls) as calls, sum(s.cost_usd) as cost_usd, sum(s.prompt_tokens) as prompt,
    sum(s.completion_tokens) as completion, sum(s.cache_read_tokens) as cache_read,
    sum(s.cache_write_tokens) as cache_write, sum(s.reasoning_tokens) as reasoning
  into taken from seen s;
  if taken.children > 0 then
    update runs r set
      calls = r.calls + taken.calls,
      cost_usd = r.cost_usd + taken.cost_usd,
      prompt_tokens = r.prompt_tokens + taken.prompt,
      completion_tokens = r.completion_tokens + taken.completion,
      cache_read_tokens = r.cache_read_tokens + taken.cache_read,
      cache_write_tokens = r.cache_write_tokens + taken.cache_write,
      reasoning_tokens = r.reasoning_tokens + taken.reasoning
    where r.tenant_id = of_tenant_id and r.run_id = of_run_id;
  end if;
  return taken.children;
end
$$;
