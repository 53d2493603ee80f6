-- A run's events after one, in order: as many as asked for, or until the page exceeds so many bytes. `more`: others follow
-- this one, on this page or the next. They are read one by one, so that what does not fit is never decompressed.
create function run_events_after(
  of_tenant_id uuid, of_run_id uuid, after_seq bigint, max_events bigint, max_bytes bigint
) returns table (seq bigint, kind text, data json, created_at timestamptz, more boolean)
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
