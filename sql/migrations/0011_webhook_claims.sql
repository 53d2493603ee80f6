-- The first thing that an attempt at a delivery needs is done where its job is claimed: the job's lease, the attempt's row
-- and what is to be sent are one statement and one commit for all that are claimed at once.

-- Claims jobs of the queue of webhooks and begins their attempts, as `webhook_begin_attempts` does: a row for each job, and
-- where its attempt began what is to be sent and how, and the versions of the secret that signs as they are stored, the
-- newest first. An endpoint that somebody changes at this moment is not waited for, and one attempt that cannot be written
-- does not keep the others' jobs from being claimed: where no attempt began, the job's holder sees to it alone.
create function webhook_claim_attempts(
  of_queue text, of_worker text, most integer, most_serial integer, lease_ms bigint, keyed_first boolean,
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
  endpoint_ids uuid[];
  event_ids uuid[];
  attempts integer[];
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
        where j.name = 'webhook.deliver'
      ) p
    ), held as materialized (
      select w.tenant_id, w.endpoint_id
      from (select distinct tenant_id, endpoint_id from wanted) w
        cross join lateral (
          select from webhook_endpoints e
          where e.tenant_id = w.tenant_id and e.endpoint_id = w.endpoint_id and e.unregistered_at is null
          for share skip locked
        ) e
    ), waiting as materialized (
      select w.place, w.tenant_id, w.delivery_id, w.endpoint_id, d.event_id, d.attempts + 1 as attempt
      from wanted w
        join held h on h.tenant_id = w.tenant_id and h.endpoint_id = w.endpoint_id
        cross join lateral (
          select d.event_id, d.attempts, d.job_id from webhook_deliveries d
          where d.tenant_id = w.tenant_id and d.delivery_id = w.delivery_id and d.endpoint_id = w.endpoint_id
            and d.state = waits
          offset 0
        ) d
        cross join lateral (
          select from webhook_events v where v.tenant_id = w.tenant_id and v.event_id = d.event_id offset 0
        ) v
      where d.job_id = w.job_id
    ), begun as (
      insert into webhook_attempts (tenant_id, delivery_id, attempt, endpoint_id, begun_at, ends_by)
      select tenant_id, delivery_id, attempt, endpoint_id, now(), now() + within_ms * interval '1 millisecond' from waiting
      on conflict do nothing
      returning tenant_id, delivery_id
    )
    select array_agg(w.place), array_agg(w.tenant_id), array_agg(w.endpoint_id), array_agg(w.event_id),
      array_agg(w.attempt)
    into places, tenant_ids, endpoint_ids, event_ids, attempts
    from waiting w join begun b on b.tenant_id = w.tenant_id and b.delivery_id = w.delivery_id;
  exception when others then
    places := null;
    raise warning 'attempts at webhooks could not begin together and are begun one by one: %', sqlerrm;
  end;
  return query
  with begun as materialized (
    select * from unnest(places, tenant_ids, endpoint_ids, event_ids, attempts)
      b (place, tenant_id, endpoint_id, event_id, attempt)
  ), receiver as materialized (
    select t.tenant_id, t.endpoint_id, e.url, e.secret_environment, e.secret_name, e.previous_environment,
      e.previous_name, s.version as stands, v.*
    from (select distinct tenant_id, endpoint_id from begun) t
      cross join lateral (
        select e.url, e.secret_environment, e.secret_name,
          case when e.previous_until > at then e.previous_environment end as previous_environment,
          case when e.previous_until > at then e.previous_name end as previous_name
        from webhook_endpoints e where e.tenant_id = t.tenant_id and e.endpoint_id = t.endpoint_id offset 0
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
  select j.job_id, j.lease_id, j.tries, j.max_tries, j.name, j.key, j.payload, j.key_cap, b.event_id, b.attempt, v.body,
    r.url, r.secret_environment, r.secret_name, r.previous_environment, r.previous_name, r.stands, r.versions, r.formats,
    r.nonces, r.ciphertexts, r.wrapping_keys, r.wrapped_data_keys, r.created_by, r.created_at
  from unnest(job_ids, lease_ids, all_tries, all_max_tries, names, keys, payloads, key_caps)
      with ordinality j (job_id, lease_id, tries, max_tries, name, key, payload, key_cap, place)
    left join begun b on b.place = j.place
    left join receiver r on r.tenant_id = b.tenant_id and r.endpoint_id = b.endpoint_id
    left join lateral (
      select v.body from webhook_events v where v.tenant_id = b.tenant_id and v.event_id = b.event_id offset 0
    ) v on true;
end $$;

-- Tells every endpoint of the tenant that matches of an event (the rules of specification section 6.3; flow and dry run
-- concern runs alone): writes the event, and for each endpoint a delivery with its job, all at once. Says how many there
-- are. With fewer ids than that nothing is written.
create function webhook_emit(
  of_tenant_id uuid, of_type text, of_project_id uuid, of_flow_id text, is_dry_run boolean,
  of_event_id uuid, of_body text, of_run_id uuid, at timestamptz, delivery_ids uuid[], cap_well integer,
  of_queue text, of_job_name text, of_max_attempts integer
) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  endpoint_ids uuid[];
  caps integer[];
  payloads text[];
  job_ids bigint[];
  matched integer;
begin
  select array_agg(e.endpoint_id order by e.endpoint_id),
    array_agg(case when c.last_delivered_at is not null and not (c.is_failing or c.is_slow) then cap_well else 1 end
      order by e.endpoint_id)
  into endpoint_ids, caps
  from webhook_endpoints e
    left join webhook_endpoint_counts c on c.tenant_id = e.tenant_id and c.endpoint_id = e.endpoint_id
  where e.tenant_id = of_tenant_id and e.unregistered_at is null and of_type = any (e.events)
    and (e.project_id is null or e.project_id = of_project_id)
    and (of_type <> 'run.finished' or not e.has_filter
      or ((e.flow_ids is null or of_flow_id = any (e.flow_ids)) and (not is_dry_run or e.include_dry_runs is true)));
  matched := coalesce(cardinality(endpoint_ids), 0);
  if matched = 0 or matched > cardinality(delivery_ids) then
    return matched;
  end if;
  select array_agg(json_build_object('tenantId', of_tenant_id, 'endpointId', d.endpoint_id, 'deliveryId', d.delivery_id)::text
    order by d.place)
  into payloads
  from unnest(endpoint_ids, delivery_ids[1:matched]) with ordinality d (endpoint_id, delivery_id, place);
  select array_agg(j.id order by j.id) into job_ids
  from job_enqueue(array_fill(of_queue, array[matched]), array_fill(of_job_name, array[matched]),
    payloads, array_fill(1::smallint, array[matched]), array_fill(0::bigint, array[matched]),
    array_fill(of_max_attempts, array[matched]), endpoint_ids::text[], caps) j (id);
  insert into webhook_events (tenant_id, event_id, type, body, run_id, created_at)
  values (of_tenant_id, of_event_id, of_type, of_body, of_run_id, at);
  insert into webhook_deliveries (tenant_id, delivery_id, endpoint_id, event_id, type, run_id, state, next_attempt_at,
    job_id, created_at)
  select of_tenant_id, d.delivery_id, d.endpoint_id, of_event_id, of_type, of_run_id, 'being-sent', now(), d.job_id, at
  from unnest(delivery_ids[1:matched], endpoint_ids, job_ids) d (delivery_id, endpoint_id, job_id);
  return matched;
end $$;

-- As it was, row by row: as one statement for all of them it was planned while the tables were empty, and then sought every
-- attempt once for each, and every delivery of a tenant for one. A delivery is named by all that its indexes hold (the
-- state by a variable, which no partial index is for), so that it is found at once whichever of them a plan takes.
create or replace function webhook_end_attempts(
  of_tenant_ids uuid[], of_delivery_ids uuid[], of_attempts integer[], of_job_ids bigint[], of_lease_ids bigint[],
  durations_ms integer[], are_slow boolean[], reasons text[], statuses smallint[], messages text[], addresses inet[],
  answers bytea[], states text[], next_job_ids bigint[], waits_ms bigint[]
) returns setof bigint
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  completed bigint[];
  ended bigint[] := '{}';
  endpoint_ids uuid[] := '{}';
  of_endpoint_id uuid;
  waits text := 'being-sent';
begin
  select array_agg(c.id) into completed from job_complete(of_job_ids, of_lease_ids) as c (id);
  for i in 1 .. cardinality(of_job_ids) loop
    continue when of_job_ids[i] = any (completed) is not true;
    select a.endpoint_id into of_endpoint_id from webhook_attempts a
    where a.tenant_id = of_tenant_ids[i] and a.delivery_id = of_delivery_ids[i] and a.attempt = of_attempts[i];
    update webhook_deliveries d
    set attempts = of_attempts[i], state = states[i], last_error = reasons[i], last_status = statuses[i],
      job_id = next_job_ids[i],
      next_attempt_at = case when states[i] = 'being-sent' then clock_timestamp() + waits_ms[i] * interval '1 millisecond' end,
      ended_at = case when states[i] <> 'being-sent' then clock_timestamp() end
    where d.tenant_id = of_tenant_ids[i] and d.delivery_id = of_delivery_ids[i] and d.endpoint_id = of_endpoint_id
      and d.state = waits and d.attempts = of_attempts[i] - 1;
    continue when not found;
    update webhook_attempts a
    set ended_at = clock_timestamp(), duration_ms = durations_ms[i], reason = reasons[i], status = statuses[i],
      message = messages[i], address = addresses[i], answer = answers[i]
    where a.tenant_id = of_tenant_ids[i] and a.delivery_id = of_delivery_ids[i] and a.attempt = of_attempts[i]
      and a.ended_at is null;
    ended := ended || i::bigint;
    endpoint_ids := endpoint_ids || of_endpoint_id;
  end loop;
  insert into webhook_endpoint_counts as c (tenant_id, endpoint_id, delivered, failed, is_failing, is_slow,
    last_delivered_at, last_failed_at, last_error, last_status)
  select tenant_id, endpoint_id, count(*) filter (where state = 'delivered'), count(*) filter (where state = 'failed'),
    (array_agg(reason is not null order by place desc))[1], (array_agg(is_slow order by place desc))[1],
    case when bool_or(reason is null) then clock_timestamp() end,
    case when bool_or(reason is not null) then clock_timestamp() end,
    (array_agg(reason order by place desc) filter (where reason is not null))[1],
    (array_agg(status order by place desc) filter (where reason is not null))[1]
  from (
    select of_tenant_ids[e.place] as tenant_id, e.endpoint_id, states[e.place] as state, reasons[e.place] as reason,
      statuses[e.place] as status, are_slow[e.place] as is_slow, e.place
    from unnest(ended, endpoint_ids) e (place, endpoint_id)
  ) e
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
    last_status = case when excluded.last_error is null then c.last_status else excluded.last_status end;
  return query select unnest(ended);
end $$;
