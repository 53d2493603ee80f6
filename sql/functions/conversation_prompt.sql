-- What the newest answered turn of a conversation sent to its model last: its size in bytes and in the provider's tokens. Null
-- where nothing is known of it.
-- A function, so that a statement that does not need it prepares nothing for it.
create function conversation_prompt(of_tenant_id uuid, of_conversation_id uuid) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  newest uuid;
begin
  select m.run_id into newest from conversation_messages m
  where m.tenant_id = of_tenant_id and m.conversation_id = of_conversation_id and m.role = 'assistant'
  order by m.position desc limit 1;
  return (
    select s.result -> 'prompt' from run_steps s
    where s.tenant_id = of_tenant_id and s.run_id = newest and s.kind = 'model' and s.status = 'completed'
    order by s.step desc limit 1
  );
end
$$;
