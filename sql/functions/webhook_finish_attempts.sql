-- Finishes attempts and completes their jobs, and answers with their indexes in the arrays. Left out: those whose job is
-- another's now, and those of a delivery that has ended. Each attempt's row is written here, as of when it began, so long
-- ago. A delivery's row is written before its attempt's, as wherever both are.
--
-- It is one statement for all of them, whose plan is kept and may have been made while the tables were empty. So a delivery
-- is joined by nothing but what comes with its attempt (the state that it has by now as well), which leaves no other way
-- to find it; and by every column that its indexes hold, so that each of them finds it at once.
create function webhook_finish_attempts(
  of_tenant_ids uuid[], of_endpoint_ids uuid[], of_delivery_ids uuid[], of_attempts integer[], of_job_ids bigint[],
  of_lease_ids bigint[], ago_ms bigint[], durations_ms integer[], are_slow boolean[], reasons text[], statuses smallint[],
  messages text[], addresses inet[], answers bytea[], states text[], next_job_ids bigint[], waits_ms bigint[]
) returns setof bigint
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  completed bigint[];
  waits text := 'being-sent';
begin
  select array_agg(c.id) into completed from job_complete(p_ids => of_job_ids, p_leases => of_lease_ids) as c (id);
  return query
  with wanted as materialized (
    select w.*, waits as waits
    from unnest(of_tenant_ids, of_endpoint_ids, of_delivery_ids, of_attempts, of_job_ids, ago_ms, durations_ms, are_slow,
        reasons, statuses, messages, addresses, answers, states, next_job_ids, waits_ms)
      with ordinality w (tenant_id, endpoint_id, delivery_id, attempt, job_id, ago_ms, duration_ms, is_slow, reason, status,
        message, address, answer, state, next_job_id, wait_ms, place)
    where w.job_id = any (completed)
  ), delivery as (
    update webhook_deliveries d
    set attempts = w.attempt, state = w.state, last_error = w.reason, last_status = w.status, job_id = w.next_job_id,
      next_attempt_at = case when w.state = w.waits then clock_timestamp() + w.wait_ms * interval '1 millisecond' end,
      ended_at = case when w.state <> w.waits then clock_timestamp() end
    from wanted w
    where d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id and d.endpoint_id = w.endpoint_id
      and d.state = w.waits and d.attempts = w.attempt - 1
    returning w.*
  ), ended as (
    insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ended_at, duration_ms, reason,
      status, message, address, answer)
    select tenant_id, delivery_id, attempt, endpoint_id, clock_timestamp() - ago_ms * interval '1 millisecond',
      clock_timestamp(), duration_ms, reason, status, message, address, answer
    from delivery
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
