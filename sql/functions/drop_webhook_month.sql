-- Drops a month, unless a delivery that still waits needs it. True: it was dropped. It waits briefly for writers: others
-- would queue behind it.
create function drop_webhook_month(month date) returns boolean
language plpgsql as $$
declare
  after uuid := (lpad(to_hex((extract(epoch from (month + interval '1 month')::timestamp) * 1000)::bigint), 12, '0')
    || repeat('0', 20))::uuid;
  parent text;
begin
  perform set_config('lock_timeout', '200ms', true);
  -- Whoever sends an old event again at this moment is waited for, and seen below.
  lock table webhook_events, webhook_deliveries, webhook_attempts in access exclusive mode;
  if exists (select from webhook_deliveries where state = 'being-sent' and event_id < after)
    or exists (select from webhook_deliveries where state = 'being-sent' and delivery_id < after) then
    return false;
  end if;
  foreach parent in array array['webhook_events', 'webhook_deliveries', 'webhook_attempts'] loop
    execute format('drop table if exists %I', parent || '_' || to_char(month, 'YYYYMM'));
  end loop;
  return true;
end $$;
