-- Attempts at deliveries begin and end many at once, each time in one statement whose plan is kept, and may have been made
-- while the tables were empty. So each row is sought by its primary key, whatever the plan: by laterals and arrays, and by
-- a delivery's end where an index of states could be gone by.

-- Begins attempts at deliveries that wait, each under its own job: writes their rows and answers with what is to be sent
-- and how, by the place in the arrays. Not of those whose endpoint is not registered (any more), that wait under another
-- job or no longer, or whose next attempt has begun already. The share of an endpoint's row is held until the attempts'
-- rows are committed, so that an unregistering sees either the one or the other.
create function webhook_begin_attempts(
  of_tenant_ids uuid[], of_endpoint_ids uuid[], of_delivery_ids uuid[], of_job_ids bigint[], within_ms bigint,
  at timestamptz
) returns table (place bigint, event_id uuid, attempt integer, body text, url text, secret_environment text,
  secret_name text, previous_environment text, previous_name text)
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  with wanted as (
    select * from unnest(of_tenant_ids, of_endpoint_ids, of_delivery_ids, of_job_ids)
      with ordinality w (tenant_id, endpoint_id, delivery_id, job_id, place)
  ), held as materialized (
    select w.tenant_id, w.endpoint_id, e.*
    from (select distinct tenant_id, endpoint_id from wanted order by tenant_id, endpoint_id) w
      cross join lateral (
        select e.url, e.secret_environment, e.secret_name,
          case when e.previous_until > at then e.previous_environment end as previous_environment,
          case when e.previous_until > at then e.previous_name end as previous_name
        from webhook_endpoints e
        where e.tenant_id = w.tenant_id and e.endpoint_id = w.endpoint_id and e.unregistered_at is null
        for share
      ) e
  ), waiting as materialized (
    select w.place, w.tenant_id, w.delivery_id, d.event_id, d.attempts + 1 as attempt, v.body, h.endpoint_id, h.url,
      h.secret_environment, h.secret_name, h.previous_environment, h.previous_name
    from wanted w
      join held h on h.tenant_id = w.tenant_id and h.endpoint_id = w.endpoint_id
      cross join lateral (
        select d.event_id, d.attempts, d.job_id, d.ended_at from webhook_deliveries d
        where d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id offset 0
      ) d
      cross join lateral (
        select v.body from webhook_events v where v.tenant_id = w.tenant_id and v.event_id = d.event_id offset 0
      ) v
    where d.ended_at is null and d.job_id = w.job_id
  ), begun as (
    insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
    select tenant_id, delivery_id, attempt, endpoint_id, now(), now() + within_ms * interval '1 millisecond' from waiting
    on conflict do nothing
    returning tenant_id, delivery_id
  )
  select w.place, w.event_id, w.attempt, w.body, w.url, w.secret_environment, w.secret_name, w.previous_environment,
    w.previous_name
  from waiting w join begun b on b.tenant_id = w.tenant_id and b.delivery_id = w.delivery_id;
end $$;

-- Ends attempts: completes their jobs, writes what becomes of their deliveries, the attempts' ends and the endpoints'
-- figures, and answers with their places in the arrays. Not of those whose job is another's now, nor of a delivery that
-- has ended. A delivery's row is written before its attempt's, as wherever both are.
create function webhook_end_attempts(
  of_tenant_ids uuid[], of_delivery_ids uuid[], of_attempts integer[], of_job_ids bigint[], of_lease_ids bigint[],
  durations_ms integer[], are_slow boolean[], reasons text[], statuses smallint[], messages text[], addresses inet[],
  answers bytea[], states text[], next_job_ids bigint[], waits_ms bigint[]
) returns setof bigint
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  with completed as materialized (
    select id from job_complete(of_job_ids, of_lease_ids) as c (id)
  ), wanted as (
    select w.* from unnest(of_tenant_ids, of_delivery_ids, of_attempts, of_job_ids, durations_ms, are_slow, reasons,
        statuses, messages, addresses, answers, states, next_job_ids, waits_ms)
      with ordinality w (tenant_id, delivery_id, attempt, job_id, duration_ms, is_slow, reason, status, message, address,
        answer, state, next_job_id, wait_ms, place)
    where w.job_id in (select id from completed)
  ), delivery as (
    update webhook_deliveries d
    set attempts = w.attempt, state = w.state, last_error = w.reason, last_status = w.status, job_id = w.next_job_id,
      next_attempt_at =
        case when w.state = 'being-sent' then clock_timestamp() + w.wait_ms * interval '1 millisecond' end,
      ended_at = case when w.state <> 'being-sent' then clock_timestamp() end
    from wanted w
    where d.tenant_id = any (of_tenant_ids) and d.delivery_id = any (of_delivery_ids)
      and d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id and d.ended_at is null
      and d.attempts = w.attempt - 1
    returning w.*, d.endpoint_id
  ), ended as (
    update webhook_attempts a
    set ended_at = clock_timestamp(), duration_ms = d.duration_ms, reason = d.reason, status = d.status,
      message = d.message, address = d.address, answer = d.answer
    from delivery d
    where a.tenant_id = any (of_tenant_ids) and a.delivery_id = any (of_delivery_ids)
      and a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.attempt = d.attempt and a.ended_at is null
  ), counted as (
    insert into webhook_endpoint_counts as c (tenant_id, endpoint_id, delivered, failed, is_failing, is_slow,
      last_delivered_at, last_failed_at, last_error, last_status)
    select tenant_id, endpoint_id, count(*) filter (where state = 'delivered'),
      count(*) filter (where state = 'failed'),
      (array_agg(reason is not null order by place desc))[1], (array_agg(is_slow order by place desc))[1],
      case when bool_or(reason is null) then clock_timestamp() end,
      case when bool_or(reason is not null) then clock_timestamp() end,
      (array_agg(reason order by place desc) filter (where reason is not null))[1],
      (array_agg(status order by place desc) filter (where reason is not null))[1]
    from delivery
    group by tenant_id, endpoint_id
    order by tenant_id, endpoint_id
    on conflict (tenant_id, endpoint_id) do update set
      delivered = c.delivered + excluded.delivered,
      failed = c.failed + excluded.failed,
      is_failing = excluded.is_failing,
      is_slow = excluded.is_slow,
      last_delivered_at = coalesce(excluded.last_delivered_at, c.last_delivered_at),
      last_failed_at = coalesce(excluded.last_failed_at, c.last_failed_at),
      last_error = coalesce(excluded.last_error, c.last_error),
      last_status = case when excluded.last_error is null then c.last_status else excluded.last_status end
  )
  select place from delivery;
end $$;

-- What is in flight is found by the deliveries that wait.
drop index webhook_attempts_open;
