-- What a delivery costs once its event was written, for many at once: ends in one statement for a whole group, claims
-- that read each row once, and less that is written beside a row.
--
-- CHECK constraints are read from the catalog and compiled anew by every statement that writes a row. What they said is
-- guaranteed by who writes: the states are those of the program's types and of the functions here, which say with the
-- state when a delivery ended; the number of an attempt is one more than those that have ended; a message and an answer
-- are cut to their length where they are taken (`webhooks::deliver`).
--
-- The tables are locked for a moment, in the order in which whoever writes both comes to them.
do $$
declare
  of_table text;
  name text;
begin
  for of_table, name in
    select conrelid::regclass, conname from pg_constraint
    where contype = 'c' and conislocal and conrelid::regclass::text in ('webhook_deliveries', 'webhook_attempts')
    order by conrelid::regclass::text desc
  loop
    execute format('alter table %s drop constraint %I', of_table, name);
  end loop;
end $$;

-- A delivery that ends changes its state, and with it its entry in every index. The index by state serves all that this
-- one did: a list of all states merges three of its ranges.
drop index webhook_deliveries_endpoint;

-- As in 0011, which stays for processes of the version before: claims jobs of the queue of webhooks and begins their
-- attempts. A row for each job, and where its attempt began what is to be sent and how, and the versions of the secret
-- that signs as they are stored, the newest first. An endpoint that somebody changes at this moment is not waited for,
-- and one attempt that cannot be written does not keep the others' jobs from being claimed: where no attempt began, the
-- job's holder sees to it alone. Each row is read once.
create function webhook_claim_attempts(
  of_queue text, of_worker text, of_job_name text, most integer, most_serial integer, lease_ms bigint, keyed_first boolean,
  within_ms bigint, at timestamptz
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
  places bigint[];
  tenant_ids uuid[];
  event_ids uuid[];
  attempts integer[];
  bodies text[];
  urls text[];
  environments text[];
  secret_names text[];
  previous_environments text[];
  previous_names text[];
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
  begin
    with wanted as materialized (
      select (p.payload ->> 'tenantId')::uuid as tenant_id, (p.payload ->> 'endpointId')::uuid as endpoint_id,
        (p.payload ->> 'deliveryId')::uuid as delivery_id, p.job_id, p.place
      from (
        select j.payload::json as payload, j.job_id, j.place
        from unnest(job_ids, names, payloads) with ordinality j (job_id, name, payload, place)
        where j.name = of_job_name
      ) p
    ), held as materialized (
      select w.tenant_id, w.endpoint_id, e.*
      from (select distinct tenant_id, endpoint_id from wanted) w
        cross join lateral (
          select e.url, e.secret_environment, e.secret_name,
            case when e.previous_until > at then e.previous_environment end as previous_environment,
            case when e.previous_until > at then e.previous_name end as previous_name
          from webhook_endpoints e
          where e.tenant_id = w.tenant_id and e.endpoint_id = w.endpoint_id and e.unregistered_at is null
          for share skip locked
        ) e
    ), waiting as materialized (
      select w.place, w.tenant_id, w.delivery_id, d.event_id, d.attempts + 1 as attempt, v.body, h.*
      from wanted w
        cross join lateral (
          select h.endpoint_id, h.url, h.secret_environment, h.secret_name, h.previous_environment, h.previous_name
          from held h where h.tenant_id = w.tenant_id and h.endpoint_id = w.endpoint_id
        ) h
        cross join lateral (
          select d.event_id, d.attempts, d.job_id from webhook_deliveries d
          where d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id and d.endpoint_id = w.endpoint_id
            and d.state = waits
          offset 0
        ) d
        cross join lateral (
          select v.body from webhook_events v where v.tenant_id = w.tenant_id and v.event_id = d.event_id offset 0
        ) v
      where d.job_id = w.job_id
    ), begun as (
      insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
      select tenant_id, delivery_id, attempt, endpoint_id, now(), now() + within_ms * interval '1 millisecond' from waiting
      on conflict do nothing
      returning tenant_id, delivery_id
    )
    select array_agg(w.place), array_agg(w.tenant_id), array_agg(w.event_id), array_agg(w.attempt), array_agg(w.body),
      array_agg(w.url), array_agg(w.secret_environment), array_agg(w.secret_name), array_agg(w.previous_environment),
      array_agg(w.previous_name)
    into places, tenant_ids, event_ids, attempts, bodies, urls, environments, secret_names, previous_environments,
      previous_names
    from waiting w join begun b on b.tenant_id = w.tenant_id and b.delivery_id = w.delivery_id;
  exception when others then
    places := null;
    raise warning 'attempts at webhooks could not begin together and are begun one by one: %', sqlerrm;
  end;
  return query
  with begun as materialized (
    select * from unnest(places, tenant_ids, event_ids, attempts, bodies, urls, environments, secret_names,
        previous_environments, previous_names)
      b (place, tenant_id, event_id, attempt, body, url, secret_environment, secret_name, previous_environment,
        previous_name)
  ), signs as materialized (
    select t.*, s.version as stands, v.*
    from (select distinct tenant_id, secret_environment, secret_name from begun) t
      left join lateral (
        select s.version from secrets s
        where s.tenant_id = t.tenant_id and s.environment = t.secret_environment and s.name = t.secret_name offset 0
      ) s on true
      cross join lateral (
        select array_agg(v.version) as versions, array_agg(v.format) as formats, array_agg(v.nonce) as nonces,
          array_agg(v.ciphertext) as ciphertexts, array_agg(v.wrapping_key) as wrapping_keys,
          array_agg(v.wrapped_data_key) as wrapped_data_keys, array_agg(v.created_by) as created_by,
          array_agg(v.created_at) as created_at
        from (
          select v.* from secret_versions v
          where v.tenant_id = t.tenant_id and v.environment = t.secret_environment and v.name = t.secret_name
          order by v.version desc
        ) v
      ) v
  )
  select j.job_id, j.lease_id, j.tries, j.max_tries, j.name, j.key, j.payload, j.key_cap, b.event_id, b.attempt, b.body,
    b.url, b.secret_environment, b.secret_name, b.previous_environment, b.previous_name, s.stands, s.versions, s.formats,
    s.nonces, s.ciphertexts, s.wrapping_keys, s.wrapped_data_keys, s.created_by, s.created_at
  from unnest(job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps)
      with ordinality j (job_id, lease_id, tries, max_tries, name, key, payload, key_cap, place)
    left join begun b on b.place = j.place
    left join signs s on s.tenant_id = b.tenant_id and s.secret_environment = b.secret_environment
      and s.secret_name = b.secret_name;
end $$;

-- As in 0011, which stays for processes of the version before: ends attempts and completes their jobs, and answers with
-- their places in the arrays; not of those whose job is another's now, nor of a delivery that has ended. A delivery's row
-- is written before its attempt's, as wherever both are.
--
-- It is one statement for all of them, whose plan is kept and may have been made while the tables were empty. So nothing
-- is said of a delivery but what comes with its attempt (the state that it has by now as well), which leaves no other way
-- to seek it; and it is named by all that its indexes hold, so that it is found at once whichever of them is taken.
create function webhook_end_attempts(
  of_tenant_ids uuid[], of_endpoint_ids uuid[], of_delivery_ids uuid[], of_attempts integer[], of_job_ids bigint[],
  of_lease_ids bigint[], durations_ms integer[], are_slow boolean[], reasons text[], statuses smallint[],
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
    from unnest(of_tenant_ids, of_endpoint_ids, of_delivery_ids, of_attempts, of_job_ids, durations_ms, are_slow,
        reasons, statuses, messages, addresses, answers, states, next_job_ids, waits_ms)
      with ordinality w (tenant_id, endpoint_id, delivery_id, attempt, job_id, duration_ms, is_slow, reason, status,
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
    update webhook_attempts a
    set ended_at = clock_timestamp(), duration_ms = d.duration_ms, reason = d.reason, status = d.status,
      message = d.message, address = d.address, answer = d.answer
    from delivery d
    where a.tenant_id = d.tenant_id and a.delivery_id = d.delivery_id and a.attempt = d.attempt and a.ended_at is null
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
