-- What was said in a conversation, the newest last: at most so many messages, and none before the one that takes them past
-- so many bytes. The newest is there whatever its length. A message that a check refused is left out, but for the one of the
-- run that is under way.
-- A function, so that a statement that does not need it prepares nothing for it.
create function conversation_history(of_tenant_id uuid, of_conversation_id uuid, most bigint, most_bytes bigint) returns json
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select coalesce(json_agg(json_build_object('role', said.role, 'content', said.content, 'position', said.position, 'runId', said.run_id) order by said.position), '[]')
    from (select c.position, c.role, c.content, c.run_id, row_number() over newest as place,
        sum(octet_length(c.content)) over newest as bytes
      from (select m.position, m.role, m.content, m.run_id from conversation_messages m
        where m.tenant_id = of_tenant_id and m.conversation_id = of_conversation_id
          and (not m.refused or m.run_id = (
            select a.active_run_id from conversations a where a.tenant_id = of_tenant_id and a.conversation_id = of_conversation_id))
        order by m.position desc limit most) c
      window newest as (order by c.position desc)) said
    where said.place = 1 or said.bytes <= most_bytes
  );
end
$$;
