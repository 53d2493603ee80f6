-- An attempt at a delivery is written once, when it has ended. That somebody may be told of a delivery stands in its job: a
-- job that is under a lease is being worked on, and one that was claimed before without being given back hides an attempt
-- whose outcome was lost. An attempt is over when the lease is under which it began (`job_keep_lease`).

-- Attempts that processes of the version before begin still say until when they may be in flight.
alter table webhook_attempts alter column ends_by drop not null;

-- As `webhook_claim_attempts` in 0013, which stays for processes of the version before: claims jobs of the queue of webhooks,
-- under a lease that no attempt outlasts. A row for each job, and where an attempt may be made at once what is to be sent and
-- how, and the versions of the secret that signs as they are stored, the newest first. The share of an endpoint's row is held
-- until the lease is committed, so that an unregistering sees either the one or the other; one that somebody changes at this
-- moment is not waited for. Where nothing is to be sent, and where an earlier claim was lost, the job's holder sees to it
-- alone.
create function webhook_claim_deliveries(
  of_queue text, of_worker text, of_job_name text, most integer, most_serial integer, lease_ms bigint, keyed_first boolean,
  at timestamptz
) returns table (job_id bigint, lease_id bigint, tries integer, max_tries integer, name text, key text, payload text,
  key_cap integer, event_id uuid, attempt integer, body text, url text, secret_environment text, secret_name text,
  previous_environment text, previous_name text, stands integer, versions integer[], formats smallint[], nonces bytea[],
  ciphertexts bytea[], wrapping_keys text[], wrapped_data_keys bytea[], created_by uuid[], created_at timestamptz[])
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  job_ids bigint[];
  lease_ids bigint[];
  all_tries integer[];
  all_max_tries integer[];
  names text[];
  keys text[];
  payloads text[];
  key_caps integer[];
  waits text := 'being-sent';
begin
  select array_agg(c.id), array_agg(c.lease_id), array_agg(c.attempt), array_agg(c.max_attempts), array_agg(c.name),
    array_agg(c.key), array_agg(c.payload), array_agg(c.key_cap)
  into job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps
  from job_claim(of_queue, of_worker, null, most, most_serial, lease_ms, keyed_first) c;
  if job_ids is null then
    -- What was noted of keys is noted again if it is lost.
    perform set_config('synchronous_commit', 'off', true);
    return;
  end if;
  return query
  with claimed as materialized (
    select j.*, (j.document ->> 'tenantId')::uuid as tenant_id, (j.document ->> 'endpointId')::uuid as endpoint_id,
      (j.document ->> 'deliveryId')::uuid as delivery_id
    from (select j.*, case when j.name = of_job_name and j.tries = 1 then j.payload::json end as document
      from unnest(job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps)
        j (job_id, lease_id, tries, max_tries, name, key, payload, key_cap)) j
  ), receiver as materialized (
    select t.tenant_id, t.endpoint_id, e.*, s.version as stands, v.*
    from (select distinct tenant_id, endpoint_id from claimed where tenant_id is not null) t
      cross join lateral (
        select e.url, e.secret_environment, e.secret_name,
          case when e.previous_until > at then e.previous_environment end as previous_environment,
          case when e.previous_until > at then e.previous_name end as previous_name
        from webhook_endpoints e
        where e.tenant_id = t.tenant_id and e.endpoint_id = t.endpoint_id and e.unregistered_at is null
        for share skip locked
      ) e
      left join lateral (
        select s.version from secrets s
        where s.tenant_id = t.tenant_id and s.environment = e.secret_environment and s.name = e.secret_name offset 0
      ) s on true
      cross join lateral (
        select array_agg(v.version) as versions, array_agg(v.format) as formats, array_agg(v.nonce) as nonces,
          array_agg(v.ciphertext) as ciphertexts, array_agg(v.wrapping_key) as wrapping_keys,
          array_agg(v.wrapped_data_key) as wrapped_data_keys, array_agg(v.created_by) as created_by,
          array_agg(v.created_at) as created_at
        from (
          select v.* from secret_versions v
          where v.tenant_id = t.tenant_id and v.environment = e.secret_environment and v.name = e.secret_name
          order by v.version desc
        ) v
      ) v
  )
  select j.job_id, j.lease_id, j.tries, j.max_tries, j.name, j.key, j.payload, j.key_cap, d.event_id, d.attempt, d.body,
    r.url, r.secret_environment, r.secret_name, r.previous_environment, r.previous_name, r.stands, r.versions, r.formats,
    r.nonces, r.ciphertexts, r.wrapping_keys, r.wrapped_data_keys, r.created_by, r.created_at
  from claimed j
    left join receiver r on r.tenant_id = j.tenant_id and r.endpoint_id = j.endpoint_id
    left join lateral (
      select d.event_id, d.attempts + 1 as attempt, v.body
      from (
        select d.event_id, d.attempts, d.job_id from webhook_deliveries d
        where d.tenant_id = r.tenant_id and d.delivery_id = j.delivery_id and d.endpoint_id = r.endpoint_id
          and d.state = waits
        offset 0
      ) d
        cross join lateral (
          select v.body from webhook_events v where v.tenant_id = r.tenant_id and v.event_id = d.event_id offset 0
        ) v
      where d.job_id = j.job_id
    ) d on true;
end $$;

-- Begins an attempt whose job was claimed alone, under a lease that it does not outlast. No row: the endpoint is not
-- registered, the delivery has ended or waits under another job, or the lease was lost.
create function webhook_begin_attempt(
  of_tenant_id uuid, of_endpoint_id uuid, of_delivery_id uuid, of_job_id bigint, of_lease_id bigint, within_ms bigint,
  at timestamptz
) returns table (event_id uuid, attempt integer, body text, url text, secret_environment text, secret_name text,
  previous_environment text, previous_name text)
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  receiver webhook_endpoints;
begin
  select e.* into receiver from webhook_endpoints e
  where e.tenant_id = of_tenant_id and e.endpoint_id = of_endpoint_id and e.unregistered_at is null
  for share;
  if not found or not job_keep_lease(of_job_id, of_lease_id, within_ms) then
    return;
  end if;
  return query
  select d.event_id, d.attempts + 1, v.body, receiver.url, receiver.secret_environment, receiver.secret_name,
    case when receiver.previous_until > at then receiver.previous_environment end,
    case when receiver.previous_until > at then receiver.previous_name end
  from webhook_deliveries d
    cross join lateral (
      select v.body from webhook_events v where v.tenant_id = d.tenant_id and v.event_id = d.event_id offset 0
    ) v
  where d.tenant_id = of_tenant_id and d.delivery_id = of_delivery_id and d.ended_at is null and d.job_id = of_job_id;
end $$;

-- As in 0013, which stays for processes of the version before: ends attempts and completes their jobs, and answers with
-- their places in the arrays; not of those whose job is another's now, nor of a delivery that has ended. Each attempt's row
-- is written here, as of when it began, so long ago; one that a process of the version before began and left open is
-- ended. A delivery's row is written before its attempt's, as wherever both are.
--
-- It is one statement for all of them, whose plan is kept and may have been made while the tables were empty. So nothing
-- is said of a delivery but what comes with its attempt (the state that it has by now as well), which leaves no other way
-- to seek it; and it is named by all that its indexes hold, so that it is found at once whichever of them is taken.
create function webhook_end_attempts(
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
  select array_agg(c.id) into completed from job_complete(of_job_ids, of_lease_ids) as c (id);
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
    insert into webhook_attempts as a (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ended_at, duration_ms, reason,
      status, message, address, answer)
    select tenant_id, delivery_id, attempt, endpoint_id, clock_timestamp() - ago_ms * interval '1 millisecond',
      clock_timestamp(), duration_ms, reason, status, message, address, answer
    from delivery
    on conflict (tenant_id, delivery_id, attempt) do update set ended_at = excluded.ended_at,
      duration_ms = excluded.duration_ms, reason = excluded.reason, status = excluded.status, message = excluded.message,
      address = excluded.address, answer = excluded.answer
    where a.ended_at is null
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
