-- The calls of tools in the turns of a conversation's newest messages, but for one run's, and what they answered: the completed
-- steps as the journal has them, in order, without what a model alone is handed back. The newest so many steps and bytes. A longer
-- text is shortened. A step that is far too long, or was erased, is left out.
-- A function, so that a statement that does not need it prepares nothing for it.
create function conversation_calls(of_tenant_id uuid, of_conversation_id uuid, but_run_id uuid, most_messages bigint, most_bytes bigint)
returns json language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  of_runs uuid[];
  most_steps constant bigint := 400;
  longest_step constant integer := 1048576;
  longest_calls constant integer := 65536;
  longest_text constant integer := 4096;
  mark constant text := E'\n[… shortened]';
begin
  select array_agg(distinct newest.run_id) into of_runs
  from (select m.run_id from conversation_messages m
    where m.tenant_id = of_tenant_id and m.conversation_id = of_conversation_id
    order by m.position desc limit most_messages) newest
  where newest.run_id <> but_run_id;
  return (
    select coalesce(json_agg(json_build_object('runId', sent.run_id, 'step', sent.step, 'kind', sent.kind,
      'request', sent.request, 'result', sent.result) order by sent.run_id, sent.step), '[]')
    from (select short.*, sum(octet_length(short.result::text) + octet_length(short.request::text))
        over (order by short.run_id desc, short.step desc) as bytes
      from (select s.run_id, s.step, s.kind, s.request, case s.kind
          when 'model' then json_build_object('text', case when length(s.result ->> 'text') > longest_text
            then left(s.result ->> 'text', longest_text) || mark else s.result ->> 'text' end,
            'toolCalls', s.result -> 'toolCalls', 'finishReason', null)
          else json_build_object('isError', s.result -> 'isError', 'output', case when length(s.result ->> 'output') > longest_text
            then left(s.result ->> 'output', longest_text) || mark else s.result ->> 'output' end) end as result
        from (select w.* from run_steps w
          where w.tenant_id = of_tenant_id and w.run_id = any (of_runs) and w.status = 'completed'
            and w.kind in ('model', 'tool', 'child') and w.result is not null
            and pg_column_size(w.result) <= longest_step and pg_column_size(w.request) <= longest_calls
          order by w.run_id desc, w.step desc limit most_steps) s
        where s.kind <> 'model' or octet_length((s.result -> 'toolCalls')::text) between 3 and longest_calls) short) sent
    where sent.bytes <= most_bytes
  );
end
$$;
