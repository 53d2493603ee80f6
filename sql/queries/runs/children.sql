-- What children answered is read where $3 asks for it.
select c.slot, c.child_run_id, c.path, c.state, c.seen, c.calls, c.cost_usd::float8 as cost_usd, c.prompt_tokens,
  c.completion_tokens, c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens, r.failure_message,
  case when $3 then
    (select p.output from run_payloads p where p.tenant_id = c.tenant_id and p.run_id = c.child_run_id)
  end as output,
  r.payload_erased_at is not null as is_erased,
  case when $3 and c.state = 'failed' then
    (select s.error from flow_states s where s.tenant_id = c.tenant_id and s.run_id = c.child_run_id)
  end as error
from run_children c
join runs r on r.tenant_id = c.tenant_id and r.run_id = c.child_run_id
where c.tenant_id = $1 and c.parent_run_id = $2
order by c.slot
