-- What was parsed and planned at every call, or was a heavier plan than its work needs, in a form that is neither. What
-- the functions of earlier migrations do is the same.

-- What a call costs in US dollars. Cache tokens are part of the prompt and reasoning tokens part of the
-- completion; a part without a price of its own costs what its whole costs; a count that is not known is
-- not charged. Null when nothing is known, or when tokens that were counted have no price.
-- One expression: Postgres puts it into the statement that calls it.
create or replace function model_call_cost(
  prompt bigint, completion bigint, cache_read bigint, cache_write bigint, reasoning bigint,
  prompt_price numeric, completion_price numeric, cache_read_price numeric, cache_write_price numeric, reasoning_price numeric
) returns numeric language sql immutable parallel safe as $$
  select case when coalesce(prompt, completion, cache_read, cache_write, reasoning) is not null then (
    case when prompt > coalesce(cache_read, 0) + coalesce(cache_write, 0)
      then (prompt - coalesce(cache_read, 0) - coalesce(cache_write, 0)) * prompt_price else 0 end
    + case when cache_read > 0 then cache_read * coalesce(cache_read_price, prompt_price) else 0 end
    + case when cache_write > 0 then cache_write * coalesce(cache_write_price, prompt_price) else 0 end
    + case when completion > coalesce(reasoning, 0)
      then (completion - coalesce(reasoning, 0)) * completion_price else 0 end
    + case when reasoning > 0 then reasoning * coalesce(reasoning_price, completion_price) else 0 end
  ) / 1000000 end
$$;

-- A run's events after one, in order: as many as asked for, or as take the page past so many bytes. One is read after
-- another, so that what does not fit is never unpacked. `more`: others follow this one, on this page or the next.
create function run_events_after(
  of_tenant_id uuid, of_run_id uuid, after_seq bigint, max_events bigint, max_bytes bigint
) returns table (seq bigint, kind text, data jsonb, created_at timestamptz, more boolean)
language plpgsql stable as $$
declare
  event record;
  events bigint := 0;
  bytes bigint := 0;
begin
  for event in
    select e.seq, e.kind, e.data, e.created_at from run_events e
    where e.tenant_id = of_tenant_id and e.run_id = of_run_id and e.seq > after_seq
    order by e.seq limit max_events + 1
  loop
    if events > 0 then
      more := true;
      return next;
      exit when events >= max_events or bytes >= max_bytes;
    end if;
    seq := event.seq;
    kind := event.kind;
    data := event.data;
    created_at := event.created_at;
    more := false;
    events := events + 1;
    bytes := bytes + octet_length(data::text);
  end loop;
  if events > 0 and not more then
    return next;
  end if;
end
$$;
